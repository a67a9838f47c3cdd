"""A gate is planned by one process at a time: its directory, which has a lock of its own, exists only after that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from esper_ab.campaign.experiment_directory import made
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import remove_folder_below
from esper_ab.contracts.unversioned import leave_unversioned
from esper_ab.journal.lock import Lock, holder

_TRIES = 100  # because a process that ends its plan removes the folder


@contextmanager
def planned_alone(directory: Path) -> Iterator[None]:
    """Inside this context, no other process can plan the gate of `directory`; UsageError if one does already.

    The lock is in a hidden folder beside the directory, which is removed again; one that a killed process has left is
    used anew.
    """
    lock_folder = directory.with_name(f".{directory.name}")
    with closing(_locked(directory, lock_folder)):
        try:
            yield
        finally:
            with suppress(OSError):  # what is left is used anew
                remove_folder_below(directory.parent, lock_folder.name)


def _locked(directory: Path, lock_folder: Path) -> Lock:
    for _ in range(_TRIES):
        made(lock_folder)
        if (present_holder := holder(lock_folder)) is not None:
            raise UsageError(f"{directory}: this gate is running ({present_holder}) and has not begun to train yet")
        with suppress(FileNotFoundError):  # another process has just removed the folder
            leave_unversioned(lock_folder)
            return Lock(lock_folder)
    return Lock(lock_folder)
