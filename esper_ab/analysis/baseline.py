"""Whether the groups are clearly apart from what they would reach without learning anything. Pure.

All groups that learn nothing end alike, so a missing difference shows nothing about them. In clinical trials, the
ability to show differences is called assay sensitivity (ICH E10). So nothing is called smaller than the margin unless
both groups are shown to be farther than the margin from every known baseline: guessing a class, and groups of the
experiment that are known to learn nothing. Without any, nothing can be known.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from esper_ab.analysis.kind import FindingsKind
from esper_ab.analysis.observe import ComparedPairs
from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.design.design import Contrast
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import outcome_of
from esper_ab.stats.least_pairs import LEAST_EQUIVALENCE_PAIRS
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.stats.text import signed
from esper_ab.verdict.finding import Finding

_UNEVEN = 1.05  # factor on chance: always guessing the largest class scores more, because classes differ in size
_LEAST_SHARED = 2  # replicates, for an interval


@dataclass(frozen=True, kw_only=True)
class _Baseline:
    """What is reached without learning."""

    outcomes: Mapping[int, float]  # by replicate, in the unit of the outcome
    least_difference: float  # a group that is shown to lie below it is apart from the baseline
    apart_words: str  # after "more than the margin": "above guessing (10 %)"


def baseline_findings(history: History, pairs: ComparedPairs) -> Iterator[Finding]:
    """Yield at most one finding per comparison and baseline, once there are enough pairs for an equivalence."""
    unlearned_groups = _unlearned_groups(history)
    for contrast, compared_pairs in pairs.items():
        used_replicates = [pair.replicate for pair in compared_pairs]
        if len(used_replicates) < LEAST_EQUIVALENCE_PAIRS:
            continue
        baselines = list(_guessing(history, used_replicates))
        if not any(group in contrast.groups for group in unlearned_groups):  # else the comparison itself answers this
            baselines += [_group_as_baseline(history, group, used_replicates) for group in unlearned_groups]
        for baseline in baselines:
            yield from _find_groups_near(history, contrast, baseline)


def missing_baseline(history: History) -> str:
    """Return the controller whose group would show whether the others learned anything.

    "" if a baseline is known, or if there is no such controller for the task.
    """
    if history.plan.chance is not None or _unlearned_groups(history):
        return ""
    return of_kind(history.plan.kind, FindingsKind).baseline_controller


def _unlearned_groups(history: History) -> list[str]:
    """Return the groups that are known to learn nothing."""
    controller = of_kind(history.plan.kind, FindingsKind).baseline_controller
    return [group.name for group in history.plan.experiment.groups if group.settings.controller.name == controller]


def _guessing(history: History, replicates: Collection[int]) -> Iterator[_Baseline]:
    """Yield the baseline of guessing a class, if there are classes."""
    chance = history.plan.chance
    if chance is not None:
        yield _Baseline(
            outcomes=dict.fromkeys(replicates, chance * _UNEVEN),
            least_difference=-math.inf,
            apart_words=f"above guessing ({history.outcome.value(f'{chance:.3g}')})",
        )


def _group_as_baseline(history: History, group: str, replicates: Collection[int]) -> _Baseline:
    kind = of_kind(history.plan.kind, FindingsKind)
    return _Baseline(
        outcomes=_outcomes(history, group, replicates),
        least_difference=-history.design.margin,
        apart_words=f"from {group}, which {kind.baseline_words}",
    )


def _find_groups_near(history: History, contrast: Contrast, baseline: _Baseline) -> Iterator[Finding]:
    """Find groups whose difference from a baseline is shown neither to exceed the margin nor to lie below its
    `least_difference`.
    """
    design = history.design
    near_groups = dict[str, str]()
    for group in contrast.groups:
        outcomes = _outcomes(history, group, baseline.outcomes)
        if len(outcomes) < _LEAST_SHARED:
            near_groups[group] = f"{group} shares too few seeds with it"
            continue
        replicates = list(outcomes)
        difference = paired_difference(list(outcomes.values()), [baseline.outcomes[seed] for seed in replicates])
        low = difference.mean
        high = difference.mean
        if difference.low is not None and difference.high is not None:  # None if nothing varies
            low = difference.low
            high = difference.high
        if low <= design.margin and high >= baseline.least_difference:
            near_groups[group] = (
                f"{group} {design.difference(difference.mean)}, "
                f"95 % interval {signed(low, design.digits)} to {signed(high, design.digits)}"
            )
    if near_groups:
        verb = "is" if len(near_groups) == 1 else "are"
        claim = "EQUIVALENT" if design.non_inferiority is None else "NOT WORSE"
        sentence = (
            f"{claim} cannot be claimed: it has not been shown that {' and '.join(near_groups)} "
            f"{verb} more than the margin of {design.margin_words} {baseline.apart_words} "
            f"({'; '.join(near_groups.values())}). Two groups that learn nothing would be just as close."
        )
        yield Finding("baseline", "caps equivalence", contrast.groups, sentence)


def _outcomes(history: History, group: str, replicates: Collection[int]) -> dict[int, float]:
    """Return the outcomes by replicate, for the replicates that have one."""
    outcomes = {}
    for run in history.of_group(group):
        if run.ref.replicate not in replicates:
            continue
        outcome = outcome_of(run, history.design.outcome_over)
        if outcome is not None:
            outcomes[run.ref.replicate] = outcome
    return outcomes
