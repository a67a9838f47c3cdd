"""Users' code as it was when the experiment was planned, rewards and a trainer: copies in the experiment directory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from esper_ab.contracts.children import UserReward
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import folder_below
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.source_files import copy_files, source_sha256
from esper_ab.contracts.trainer import Resumption, TrainerFacts, TrainerOrder, is_command
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.settings.outcome_range import DEFAULT_OUTCOME, worst_outcome

# --- reward code -----------------------------------------------------------------------------------------------------
# Users' reward functions as they were when the experiment was planned: copies in the experiment directory.
#
# A run loads the copy, whichever day it starts, so that the original may be edited while the experiment goes on. What
# is given as `module:function` stays where it is installed; a run that finds it changed does not begin.


_REWARDS, _TRAINER, _SHOWN = "rewards", "trainer", 12  # folders; characters of a hash that name a folder in them


def code_of(reward: UserReward) -> RewardCode:
    """Reference of a user's reward function, as a run gets it from the preflight."""
    folder, file = (_folder_of(_REWARDS, reward.sha256), reward.files[0]) if reward.files else ("", "")
    return RewardCode(reference=reward.reference, folder=folder, file=file, sha256=reward.sha256)


def keep_rewards(experiment_dir: Path, rewards: Iterable[UserReward]) -> None:
    """Copy their files into `experiment_dir`; UsageError when one is no longer what the preflight loaded."""
    for reward in rewards:
        if not reward.files:
            continue
        target = folder_below(experiment_dir, _folder_of(_REWARDS, reward.sha256))
        if not _copied(Path(reward.root), reward.files, reward.sha256, target):
            raise UsageError(f"reward={reward.reference} was changed while the experiment was planned; start it again")


def _folder_of(kept: str, sha256: str) -> str:
    return f"{kept}/{sha256[:_SHOWN]}"


def _copied(root: Path, files: Sequence[str], sha256: str, target: Path) -> bool:
    """Copy `files` from `root` to `target`, unless they stay where they are; whether they are those of the hash."""
    try:
        if target != root:
            copy_files(root, files, target)
        return source_sha256(target, files) == sha256
    except FileNotFoundError:
        return False


# --- trainer ---------------------------------------------------------------------------------------------------------
# What a plan says of a trainer of the user's own, and the orders of its runs. Pure but for `keep_trainer`.


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
        folder=facts.root if command else _folder_of(_TRAINER, facts.sha256), files=facts.files, sha256=facts.sha256,
        metrics=facts.metrics, out="", resumes=facts.resumption != "anew",
    )  # fmt: skip


def keep_trainer(experiment_dir: Path, facts: TrainerFacts, reference: str) -> None:
    """Copy a Python trainer's files into `experiment_dir`; UsageError when one is no longer what was rehearsed."""
    command, root = is_command(reference), Path(facts.root)
    target = root if command else folder_below(experiment_dir, _folder_of(_TRAINER, facts.sha256))
    if not _copied(root, facts.files, facts.sha256, target):
        written = "; what the command writes belongs below {out}" if command else ""
        raise UsageError(
            f"{', '.join(facts.files)} was changed while the experiment was planned; start it again{written}"
        )


def found(facts: TrainerFacts, reference: str) -> str:
    """Say in one sentence what the rehearsal found, and no more."""
    repeats = "repeats to the bit" if facts.repeats else "does not repeat: the same seed twice gave different numbers"
    short = f", shortened by {facts.shortened}" if facts.shortened else ""
    what, watched = "trainer", ""
    if is_command(reference):
        what, watched = "command", " It names no file of its folder, so that no change of its code would be noticed."
        if facts.files:
            files = ", ".join(facts.files)
            watched = f" A run begins only with {files} as rehearsed; what else it reads is not watched."
    alone = "" if facts.evaluates_alike else f" {_ALONE}"
    return f"The {what}, as rehearsed{short}: {repeats}; {RESUMPTIONS[facts.resumption]}.{alone}{watched}"
