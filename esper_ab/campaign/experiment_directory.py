"""The directory of one experiment, before its journal: created, taken over, and filled with what was planned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from esper_ab.campaign.leftover import PLAN_TEXT, clear, is_leftover
from esper_ab.campaign.taken_directory import taken
from esper_ab.contracts.errors import SettingName, refused
from esper_ab.contracts.files_below import PRIVATE, make_folder, removed_on_failure, write_below
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.unversioned import leave_unversioned
from esper_ab.plan.plan import Plan
from esper_ab.plan.reward_code import keep_rewards
from esper_ab.plan.settings_toml import experiment_toml
from esper_ab.plan.trainer_code import keep_trainer

if TYPE_CHECKING:
    from esper_ab.code_trees.sealing import SealedCode


def made(folder: Path) -> bool:
    """Create the empty `folder`; return False if it exists. Raises DiskFull, and UsageError if it cannot be created."""
    with _refusing(folder):
        try:
            make_folder(folder, exist_ok=False, mode=PRIVATE)
        except FileExistsError:
            return False
    return True


def claim_new(folder: Path) -> None:
    """Create the empty `folder`; raises as `made` does, and UsageError if the folder exists."""
    if not made(folder):
        raise taken(folder)


def take_over(folder: Path) -> None:
    """Remove what a command that recorded nothing has left in `folder`, or create the folder if it does not exist."""
    if is_leftover(folder):
        clear(folder)
    elif not folder.exists():
        claim_new(folder)


def make_experiment_directory(
    experiment_dir: Path,
    plan: Plan,
    machine: Machine,
    text: str,
    author_remarks: dict[str, Any] | None = None,
    code: SealedCode | None = None,
) -> None:
    """Write experiment.toml, plan.txt and copies of users' reward functions and trainer into an empty directory.

    `code`: sealed states of the code, which are copied instead of the trainer. The content of plan.txt is `text`.
    Raises DiskFull if the disk is full, and UsageError if the directory cannot be written or a reward or trainer was
    edited after the preflight. After an error, the directory is removed.
    """
    with _refusing(experiment_dir), removed_on_failure(experiment_dir):
        write_below(experiment_dir, "experiment.toml", experiment_toml(plan, machine, author_remarks).encode())
        leave_unversioned(experiment_dir)
        write_below(experiment_dir, PLAN_TEXT, f"{text}\n".encode())
        keep_rewards(experiment_dir, machine.user_rewards)
        if code is not None:
            code.keep(experiment_dir)
        elif machine.trainer is not None:
            keep_trainer(experiment_dir, machine.trainer, plan.experiment.trainer)


@contextmanager
def _refusing(experiment_dir: Path) -> Iterator[None]:
    """Convert an OSError to an error that names `experiment_dir` and suggests choosing a different directory."""
    try:
        yield
    except OSError as error:
        raise refused(
            error,
            f"{experiment_dir} cannot be created: {error.strerror}; choose another with ",
            SettingName("output_dir"),
        ) from None
