"""Temporary folders that no other user can enter, and that are removed later if their owner was killed.

The owner holds a lock on its folder, which the kernel releases however the owner ends. Each process that makes such a
folder first removes those whose lock is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "esper-ab-"
_LOCK = ".owner"  # the file in a folder that its owner locks
_SHORT_TMP = 60  # characters, because the path of a unix socket is limited to 107 bytes
_YOUNG_S = 60.0  # a younger folder may not be locked yet
_held: dict[Path, int] = {}  # folder -> descriptor with the lock


def private_folder(*, extra_chars: int = 0) -> Path:
    """Create a temporary folder with mode 0700; the caller must remove it by `remove_private`.

    The folder's path is short enough for sockets. `extra_chars`: how many characters the caller adds between the folder
    and a socket's name.
    """
    long = len(tempfile.gettempdir()) + extra_chars > _SHORT_TMP
    return _make(Path("/tmp" if long else tempfile.gettempdir()))


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Create a temporary folder with mode 0700, and remove it on exit."""
    folder = _make(Path(tempfile.gettempdir()))
    try:
        yield folder
    finally:
        remove_private(folder)


def remove_private(folder: Path) -> None:
    """Remove a folder made by this process, and its content."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder in _held:
        os.close(_held.pop(folder))


def _make(parent: Path) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    _held[folder] = descriptor
    with suppress(OSError):  # a file system without locks: then no folder is found to be abandoned, either
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    _remove_abandoned(parent, os.fstat(descriptor).st_ctime)
    return folder


def _remove_abandoned(parent: Path, now_s: float) -> None:
    """Remove this user's folders whose owners have ended. `now_s`: time of the file system's clock."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and Path(entry.path) not in _held:
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path), now_s)


def _remove_if_abandoned(folder: Path, now_s: float) -> None:
    """Remove a folder, but no link to one, if it is this user's, old enough, and nobody holds its lock."""
    if folder.is_symlink():
        return
    descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if status.st_uid == os.geteuid() and now_s - status.st_ctime > _YOUNG_S:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)  # follows no links
    finally:
        os.close(descriptor)
