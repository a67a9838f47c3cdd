"""A folder in the system's temporary place, which nobody else may enter and which goes with us.

A process that is killed cannot remove its own; the next one does. Whose owner lives is told by a lock that the kernel
lets go of however a process ends: process numbers say nothing across containers that share the temporary place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from esper_ab.contracts.regular_file import open_regular

_PREFIX = "esper-"
_OWNER = ".owner"
_SHORT_TMP = 60  # characters: a path of a unix socket holds 107 bytes


class PrivateFolder:
    """Made 0700; `close` removes it with everything in it."""

    def __init__(self, *, below: int = 0) -> None:
        """Where its path is short enough for sockets; `below`: characters of folders that they lie in."""
        long = len(tempfile.gettempdir()) + below > _SHORT_TMP
        place = Path("/tmp" if long else tempfile.gettempdir())
        _sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        unnamed = self.path / f"{_OWNER}.new"
        self._owner = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        unnamed.rename(self.path / _OWNER)  # nobody can see it unlocked

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._owner)


def _sweep(place: Path) -> None:
    """Remove folders of ours whose owner is gone. What is not ours may be anything, and is not opened."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if not _ours(folder.lstat(), stat.S_ISDIR):
                continue
            owner = open_regular(folder / _OWNER, os.O_WRONLY)
            try:
                if _ours(os.fstat(owner), stat.S_ISREG):
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(owner)


def _ours(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    return is_kind(found.st_mode) and found.st_uid == os.getuid()
