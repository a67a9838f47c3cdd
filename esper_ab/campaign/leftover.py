"""Reuse the directory of an experiment that ended before anything was recorded."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from esper_ab.contracts.code_state import CODE_FOLDER
from esper_ab.contracts.files_below import remove_below, remove_folder_below
from esper_ab.contracts.run_files import LOGS, REUSED
from esper_ab.contracts.unversioned import GITIGNORE
from esper_ab.journal.begun import begun
from esper_ab.journal.lock import JOURNAL_NAME, LOCK_NAME, Lock, holder
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.readers.joint_directory import PLAN_NAME, is_joint

PLAN_TEXT = "plan.txt"
_KEPT = frozenset({LOCK_NAME, CONSOLE_NAME, GITIGNORE})  # the lock is held, and the console may be written to
_MADE = frozenset(
    {
        JOURNAL_NAME,
        "experiment.toml",
        PLAN_TEXT,
        PLAN_NAME,
        "rewards",
        "trainer",
        CODE_FOLDER,
        "tracking",
        LOGS,
        REUSED,
    }
)


def is_leftover(directory: Path) -> bool:
    """Whether no process holds `directory`, and `directory` is left over from an experiment that recorded no event.

    Such a directory is empty, or has `.lock` and only files that are written before the first event.
    """
    if directory.is_symlink() or not directory.is_dir() or is_joint(directory) or begun(directory):
        return False
    names = {path.name for path in directory.iterdir()}
    return not names or (LOCK_NAME in names and all(map(_is_ours, names)) and holder(directory) is None)


def clear(directory: Path) -> None:
    """Remove the leftover files in `directory`; UsageError if another process has taken the directory."""
    with closing(Lock(directory)):
        for path in tuple(directory.iterdir()):
            if path.name in _KEPT:
                continue
            if path.is_dir() and not path.is_symlink():
                remove_folder_below(directory, path.name)
            else:
                remove_below(directory, path.name)


def _is_ours(name: str) -> bool:
    """Whether a file or folder has one of our names, a temporary name, or the name of a part of a joint experiment."""
    plain_name = name.removeprefix(".").rpartition(".")[0] if name.startswith(".") else name
    return name in _KEPT or plain_name in _MADE | _KEPT or plain_name.endswith(".toml")
