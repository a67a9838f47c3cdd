"""Opening a file that other users may have replaced, by a link, a named pipe or whatever else; writing one whole.

An ordinary open follows a link to somebody's file, and waits without limit at the end of a pipe.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_IN_PLACE_OF_A_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})  # a link, a folder; a pipe, socket or device


class NotRegular(OSError):
    """Something else stands where a regular file is expected; `strerror` says so, beginning with "is"."""


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of the regular file `path`; NotRegular when it is none, OSError as of `os.open`. Never waits.

    `flags` as of `os.open`. What is not regular is left as it was, O_TRUNC apart, which must not be among them.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in _IN_PLACE_OF_A_FILE:
            raise _not_regular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return descriptor


def _not_regular(path: Path) -> NotRegular:
    what = "is a symbolic link" if path.is_symlink() else "is no regular file"
    return NotRegular(errno.EINVAL, what, str(path))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically, so that a reader never sees half of it; OSError when there is no room."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # unset when a write fails
        raise
