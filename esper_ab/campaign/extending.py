"""Add seeds to a finished experiment: which blocks, and the rule that then applies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from esper_ab.analysis.observe import progress_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted
from esper_ab.control.rules.looks import all_settled
from esper_ab.design.design import rule
from esper_ab.journal.fold import History
from esper_ab.plan.blocks import extend
from esper_ab.plan.plan import Extension
from esper_ab.settings.experiment import refuse_too_many


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The seeds that an extension would add, and the rule that would then apply."""

    experiment_dir: str
    more: int  # seeds to add
    replicates: int  # seeds in all
    groups: tuple[str, ...]  # groups that continue
    rule: str

    def __str__(self) -> str:
        return (
            f"{self.experiment_dir}: {counted(self.more, 'seed')} more, {self.replicates} in all, of "
            f"{', '.join(self.groups)}\nrule: {self.rule}"
        )


def preview(experiment_dir: Path, history: History, replicates: int) -> Preview:
    """Describe the extension to `replicates` seeds in all; raises as `extension` does."""
    extension_blocks = extension(experiment_dir, history, replicates)
    stopped_groups = {group for look in history.looks for group in look.leaving}
    return Preview(
        experiment_dir=str(experiment_dir),
        more=len(extension_blocks.blocks),
        replicates=replicates,
        rule=rule(extension_blocks.design),
        groups=tuple(group for group in history.groups if group not in stopped_groups),
    )


def extension(experiment_dir: Path, history: History, replicates: int) -> Extension:
    """Return the blocks to add for `replicates` seeds in all; UsageError if the experiment cannot be extended."""
    if not history.finished:
        word = history.ended.status if history.ended else "not finished"
        raise UsageError(f"{experiment_dir}: the experiment is {word}; only a finished experiment can be extended")
    if replicates <= history.replicates:
        seeds_words = f"{experiment_dir} already has {history.replicates} seeds"
        raise UsageError(f"--seeds {replicates}: {seeds_words}; give the new total number of seeds")
    refuse_too_many(len(history.plan.experiment.groups), replicates)
    if not history.design.comparisons:
        raise UsageError(f"{experiment_dir}: one group has no verdict to extend; launch it again with more seeds")
    if all_settled(progress_of(history)):
        decided_words = "every comparison is decided, or was stopped for futility"
        raise UsageError(f"{experiment_dir}: {decided_words}, so more seeds would decide nothing")
    return extend(history.plan, history.design, history.replicates, replicates - history.replicates)


def further_seeds(history: History, replicates: int) -> Extension:
    """Return the blocks to add for `replicates` seeds in all, although no look of the experiment asks for them."""
    return extend(history.plan, history.design, history.replicates, replicates - history.replicates)
