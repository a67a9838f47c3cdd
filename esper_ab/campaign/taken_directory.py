"""The refusal of a directory that exists: what is in it, and how to go on with that."""

from __future__ import annotations

from pathlib import Path

from esper_ab.contracts.errors import ByDoor, JournalError, SettingName, UsageError
from esper_ab.contracts.shell_command import shell_command
from esper_ab.journal.begun import begun
from esper_ab.journal.load import load
from esper_ab.journal.lock import holder
from esper_ab.readers.joint_directory import is_joint


def taken(directory: Path) -> UsageError:
    """Return the error for a new experiment in `directory`, which exists."""
    another = (SettingName("name"), " or ", SettingName("output_dir"))
    if not is_joint(directory) and not begun(directory):
        return UsageError(f"{directory} exists already; choose another with ", *another)
    if holder(directory) is not None:
        status = shell_command("status", directory)
        return UsageError(
            f"{directory} exists already, and its experiment is running: `{status}` shows how far it is; for a new "
            "one, choose another ",
            *another,
        )
    if not _is_finished(directory):
        resume = shell_command("resume", directory)
        return UsageError(
            f"{directory} exists already, and its experiment is not finished: `{resume}` continues it; for a new one, "
            "choose another ",
            *another,
        )
    report = ByDoor(f"`{shell_command('report', directory)}` shows", f"load_experiment({str(directory)!r}) has")
    return UsageError(
        f"{directory} exists already, and its experiment is finished: ",
        report,
        " its answer; for a new one, choose another ",
        *another,
    )


def _is_finished(directory: Path) -> bool:
    """Whether nothing is left to resume; True if its journal is damaged, which `report` describes."""
    if is_joint(directory):
        return False  # `resume` says which parts are finished
    try:
        return load(directory).history.finished
    except (JournalError, UsageError):
        return True
