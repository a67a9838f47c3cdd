"""Copies of users' rewards and trainer in the experiment directory, as they were when the experiment was planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from esper_ab.contracts.children import UserReward
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import folder_below
from esper_ab.contracts.messages import RewardCode
from esper_ab.contracts.source_files import copy_files, source_sha256
from esper_ab.contracts.trainer import Resumption, TrainerFacts, TrainerOrder, is_command
from esper_ab.settings.experiment import ResolvedExperiment
from esper_ab.settings.outcome_range import DEFAULT_OUTCOME, worst_outcome

# --- reward code -----------------------------------------------------------------------------------------------------
# Copies of users' reward functions, as they were when the experiment was planned.
#
# A run loads the copy, so the original may be edited while the experiment continues. A reward given as
# `module:function` stays where it is installed; a run does not start if the module has changed.


_REWARDS, _TRAINER, _SHOWN = "rewards", "trainer", 12  # folders; digits of the hash that name a subfolder


def code_of(reward: UserReward) -> RewardCode:
    """Return a RunSpec's reference to a user's reward function."""
    folder, file = (_folder_of(_REWARDS, reward.sha256), reward.files[0]) if reward.files else ("", "")
    return RewardCode(reference=reward.reference, folder=folder, file=file, sha256=reward.sha256)


def keep_rewards(experiment_dir: Path, rewards: Iterable[UserReward]) -> None:
    """Copy the files of the rewards into `experiment_dir`; UsageError if a file has changed since the preflight."""
    for reward in rewards:
        if not reward.files:
            continue
        target = folder_below(experiment_dir, _folder_of(_REWARDS, reward.sha256))
        if not _copied(Path(reward.root), reward.files, reward.sha256, target):
            raise UsageError(f"reward={reward.reference} changed while the experiment was planned; launch it again")


def _folder_of(kept: str, sha256: str) -> str:
    return f"{kept}/{sha256[:_SHOWN]}"


def _copied(root: Path, files: Sequence[str], sha256: str, target: Path) -> bool:
    """Copy `files` from `root` to `target`, unless the folders are equal; return whether the files match `sha256`."""
    try:
        if target != root:
            copy_files(root, files, target)
        return source_sha256(target, files) == sha256
    except FileNotFoundError:
        return False


# --- trainer ---------------------------------------------------------------------------------------------------------
# What a plan says about a user's trainer, and the TrainerOrder of its runs. Pure, except `keep_trainer`.


RESUMPTIONS: dict[Resumption, str] = {
    "exactly": "resumes exactly: from its saved state, another process reached the same bits",
    "resumes": "resumes: another process continued from its saved state, but not to the same bits",
    "anew": "starts over: an interrupted run begins again",
}
_ALONE = (
    "A process that had not trained evaluated the same state differently: the evaluation uses more than the state, so "
    "a run that is interrupted before its evaluation gets another result."
)


ENDED_IDLE = (
    "--end-idle: a run that has its result and then uses no CPU time and writes nothing for 30 s is ended, and its "
    "result counts."
)


def order_of(experiment: ResolvedExperiment, facts: TrainerFacts) -> TrainerOrder:
    """Return the TrainerOrder for a user's trainer, without the folder of a run."""
    command = is_command(experiment.trainer)
    return TrainerOrder(
        reference=experiment.trainer, directory=experiment.trainer_folder,
        outcome=experiment.outcome or DEFAULT_OUTCOME, worst=worst_outcome(experiment),
        folder=facts.root if command else _folder_of(_TRAINER, facts.sha256), files=facts.files, sha256=facts.sha256,
        metrics=facts.metrics, out="", resumes=facts.resumption != "anew",
        ends_idle=facts.ends_idle,
    )  # fmt: skip


def mended_order(order: TrainerOrder, sha256: str) -> TrainerOrder:
    """Return the order with the trainer's files of another state, which `keep_trainer` has kept."""
    folder = order.folder if is_command(order.reference) else _folder_of(_TRAINER, sha256)
    return msgspec.structs.replace(order, folder=folder, sha256=sha256)


def mended(experiment_dir: Path, facts: TrainerFacts, reference: str) -> str:
    """Keep the trainer's files as they are now; return their sha256, or "" if they are as planned or not readable."""
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
    command, root = is_command(reference), Path(facts.root)
    target = root if command else folder_below(experiment_dir, _folder_of(_TRAINER, facts.sha256))
    if not _copied(root, facts.files, facts.sha256, target):
        written = "; a command must write its results below {out}" if command else ""
        raise UsageError(
            f"{', '.join(facts.files)} changed while the experiment was planned; launch it again{written}"
        )


def found(facts: TrainerFacts, reference: str) -> str:
    """Return the results of the rehearsal in one or more sentences."""
    repeats = "repeats to the bit" if facts.repeats else "does not repeat: the same seed gave different numbers"
    short = f", shortened by {facts.shortened}" if facts.shortened else ""
    what, watched = "trainer", ""
    if is_command(reference):
        what, watched = "command", " It names no file in its folder, so changes of its code would go unnoticed."
        if facts.files:
            files = ", ".join(facts.files)
            watched = f" A run starts only if {files} has not changed since; other files are not checked."
    alone = "" if facts.evaluates_alike else f" {_ALONE}"
    return f"The {what}, as rehearsed{short}: {repeats}; {RESUMPTIONS[facts.resumption]}.{alone}{watched}"
