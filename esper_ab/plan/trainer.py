"""What a plan says of a trainer of the user's own, and the orders of its runs. Pure but for `keep`."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.below import folder_below
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.machine import TaskFacts
from esper_ab.contracts.source_files import copy_files, source_sha256
from esper_ab.contracts.trainer import Resumption, TrainerFacts, TrainerOrder, is_command
from esper_ab.design.outcome_words import of_training
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.settings.outcome_range import worst_outcome
from esper_ab.settings.trainer import DEFAULT_OUTCOME

_FOLDER, _SHOWN = "trainer", 12  # in an experiment directory; characters of a hash that name a folder in it
RESUMPTIONS: dict[Resumption, str] = {
    "exactly": "resumes exactly: another process went on from its state to the same bits",
    "resumes": "resumes: another process went on from its state, not to the same bits",
    "anew": "begins anew: a run that is interrupted starts from its beginning",
}
_ALONE = (
    "In a process that has not trained its evaluation of the same state gave other results: it uses more than the "
    "state, and a run that is interrupted before its evaluation comes to another result."
)


def order_of(experiment: ResolvedExperiment, facts: TrainerFacts) -> TrainerOrder:
    """Return the orders for a trainer of the user's own, but the folder of a run."""
    command = is_command(experiment.trainer)
    return TrainerOrder(
        reference=experiment.trainer, directory=experiment.trainer_folder,
        outcome=experiment.outcome or DEFAULT_OUTCOME, worst=worst_outcome(experiment),
        folder=facts.root if command else _folder(facts), files=facts.files, sha256=facts.sha256,
        metrics=facts.metrics, out="", resumes=facts.resumption != "anew",
    )  # fmt: skip


def keep(experiment_dir: Path, facts: TrainerFacts, reference: str) -> None:
    """Copy a Python trainer's files into `experiment_dir`; UsageError when one is no longer what was rehearsed."""
    try:
        root = Path(facts.root)
        if not is_command(reference):
            target = folder_below(experiment_dir, _folder(facts))
            copy_files(root, facts.files, target)
            root = target
        same = source_sha256(root, facts.files) == facts.sha256
    except FileNotFoundError:
        same = False
    if not same:
        written = "; what the command writes belongs below {out}" if is_command(reference) else ""
        raise UsageError(
            f"{', '.join(facts.files)} was changed while the experiment was planned; start it again{written}"
        )


def _folder(facts: TrainerFacts) -> str:
    return f"{_FOLDER}/{facts.sha256[:_SHOWN]}"


def found(facts: TrainerFacts, reference: str) -> str:
    """Say in one sentence what the rehearsal found, and no more."""
    repeats = "repeats to the bit" if facts.repeats else "does not repeat: the same seed twice gave different numbers"
    short = f", shortened by {facts.shortened}" if facts.shortened else ""
    command = is_command(reference)
    what = "command" if command else "trainer"
    alone = "" if facts.evaluates_alike else f" {_ALONE}"
    resumes = f"{RESUMPTIONS[facts.resumption]}.{alone}"
    return f"The {what}, as rehearsed{short}: {repeats}; {resumes}{_watched(facts) * command}"


def _watched(facts: TrainerFacts) -> str:
    """Say which files of a command may not change while the experiment goes on."""
    if not facts.files:
        return " It names no file of its folder, so that no change of its code would be noticed."
    return f" A run begins only with {', '.join(facts.files)} as rehearsed; what else it reads is not watched."


def estimand(experiment: ResolvedExperiment, task: TaskFacts) -> str:
    """Say in one sentence what is estimated."""
    outcome = task.measures.outcome
    pairing = "independent seeds per group" if experiment.unpaired else "the same seeds in every group"
    unit = f", in {outcome.apart}" if outcome.apart else ""
    part = of_training(experiment.outcome_over, "points")
    measured = f"the mean {outcome.label} of {part}" if part else outcome.label
    return (
        f"Mean over seeds ({pairing}) of {measured} in one group minus that in another{unit}; "
        f"{outcome.better} is better: {task.title}, with the settings printed."
    )

