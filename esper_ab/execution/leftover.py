"""The directory of an experiment that was ended before anything of it was recorded: the next of its name takes it.

A batch script that launches again would be refused for ever otherwise, and there is nothing to resume.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from esper_ab.contracts.experiment_files import LOGS
from esper_ab.contracts.files import remove_below, remove_folder_below
from esper_ab.journal.events import begun
from esper_ab.journal.lock import JOURNAL_NAME, LOCK_NAME, Lock, holder
from esper_ab.live.console import CONSOLE_NAME
from esper_ab.readers.joint_directory import PLAN_NAME, is_joint

_KEPT = frozenset({LOCK_NAME, CONSOLE_NAME})  # a lock is held, and a detached command writes into its console already
_MADE = frozenset({JOURNAL_NAME, "experiment.toml", PLAN_NAME, "rewards", "trainer", "tracking", LOGS})


def is_leftover(directory: Path) -> bool:
    """Whether it is empty, or holds `.lock` and only what a command makes before the first event, and nobody has it."""
    if directory.is_symlink() or not directory.is_dir() or is_joint(directory) or begun(directory):
        return False
    names = {path.name for path in directory.iterdir()}
    return not names or (LOCK_NAME in names and all(map(_is_ours, names)) and holder(directory) is None)


def clear(directory: Path) -> None:
    """Remove what is left in it; UsageError when somebody has it by now."""
    with closing(Lock(directory)):
        for path in tuple(directory.iterdir()):
            if path.name in _KEPT:
                continue
            if path.is_dir() and not path.is_symlink():
                remove_folder_below(directory, path.name)
            else:
                remove_below(directory, path.name)


def _is_ours(name: str) -> bool:
    """Whether a file or folder is called like one of ours, of a joint experiment's parts, or like a temporary file."""
    plain = name.removeprefix(".").rpartition(".")[0] if name.startswith(".") else name
    return name in _KEPT or plain in _MADE or plain.endswith(".toml")
