"""The files of a user's trainer, and the TrainerOrder of its runs. Pure, except `keep_trainer` and `mended`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import msgspec

from esper_ab.contracts.code_state import tree_of
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import DEFAULT_OUTCOME, TrainerFacts, TrainerOrder, is_command
from esper_ab.plan.copied_code import TRAINER_FOLDER, copy_code, folder_of
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.settings.outcome_range import worst_outcome


def order_of(experiment: ResolvedExperiment, facts: TrainerFacts, group: str) -> TrainerOrder:
    """Return the TrainerOrder for a user's trainer and the runs of a group, without the folder of a run."""
    state = facts.states.get(group)
    if state is None:
        folder = facts.root if is_command(experiment.trainer) else folder_of(TRAINER_FOLDER, facts.sha256)
        return _order(experiment, facts, folder)
    tree = tree_of(state.state)
    order = _order(experiment, facts, str(PurePosixPath(tree.folder, state.root)))
    return msgspec.structs.replace(order, files=state.files, sha256=state.sha256, tree=tree)


def _order(experiment: ResolvedExperiment, facts: TrainerFacts, folder: str) -> TrainerOrder:
    return TrainerOrder(
        reference=experiment.trainer,
        directory=experiment.trainer_folder,
        outcome=facts.source or experiment.outcome or DEFAULT_OUTCOME,
        outcome_summary=experiment.outcome_summary,
        worst=worst_outcome(experiment),
        folder=folder,
        files=facts.files,
        sha256=facts.sha256,
        metrics=facts.metrics,
        out="",
        resumes=facts.resumption != "anew",
        ends_idle=facts.ends_idle,
    )


def mended_order(order: TrainerOrder, sha256: str) -> TrainerOrder:
    """Return the order with the trainer's files of another state, which `keep_trainer` has kept."""
    folder = order.folder if is_command(order.reference) else folder_of(TRAINER_FOLDER, sha256)
    return msgspec.structs.replace(order, folder=folder, sha256=sha256)


def mended(experiment_dir: Path, facts: TrainerFacts, reference: str) -> str:
    """Keep the trainer's files as they are now; return their sha256, or "" if they are as planned or not readable.

    With a state of the code per group, they are always as planned.
    """
    if facts.states:
        return ""
    try:
        sha256 = source_sha256(Path(facts.root), facts.files) if facts.files else facts.sha256
    except OSError:
        return ""
    if sha256 == facts.sha256:
        return ""
    keep_trainer(experiment_dir, msgspec.structs.replace(facts, sha256=sha256), reference)
    return sha256


def keep_trainer(experiment_dir: Path, facts: TrainerFacts, reference: str) -> None:
    """Copy the files of a Python trainer into `experiment_dir`; UsageError if a file has changed since the rehearsal.

    A command's files are not copied, but they must not have changed either.
    """
    command = is_command(reference)
    root = Path(facts.root)
    if command:
        target = root
    else:
        target = folder_below(experiment_dir, folder_of(TRAINER_FOLDER, facts.sha256))
    if not copy_code(root, facts.files, facts.sha256, target):
        command_words = "; a command must write its results below {out}" if command else ""
        raise UsageError(
            f"{', '.join(facts.files)} changed while the experiment was planned; launch it again{command_words}"
        )
