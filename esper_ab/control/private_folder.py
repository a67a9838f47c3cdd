"""A folder in the system's temporary place for sockets and keys, which nobody else may enter and which goes with us.

A process that is killed cannot remove its own; the next one does. Whose owner lives is told by a lock that the kernel
lets go of however a process ends: process numbers say nothing across containers that share the temporary place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "esper-"
_OWNER = ".owner"
_SHORT_TMP = 60  # characters: a path of a unix socket holds 107 bytes


class PrivateFolder:
    """Made 0700; `close` removes it with everything in it."""

    def __init__(self) -> None:
        place = Path(tempfile.gettempdir() if len(tempfile.gettempdir()) <= _SHORT_TMP else "/tmp")
        _sweep(place)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        unnamed = self.path / f"{_OWNER}.new"
        self._owner = os.open(unnamed, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        unnamed.rename(self.path / _OWNER)  # nobody can see it unlocked

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._owner)


def _sweep(place: Path) -> None:
    """Remove folders of ours whose owner is gone. What is not ours, or not to be opened, is left alone."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            owner = os.open(folder / _OWNER, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if folder.stat().st_uid == os.getuid():
                    fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(owner)
