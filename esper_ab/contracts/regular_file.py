"""Opening a file that other users may have replaced, by a link, a named pipe or whatever else.

An ordinary open follows a link to somebody's file, and waits without limit at the end of a pipe.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_IN_PLACE_OF_A_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})  # a link, a folder; a pipe, socket or device


class NotRegular(OSError):
    """Something else stands where a regular file or a folder is expected; `strerror` says so, beginning with "is"."""


def open_regular(path: Path, flags: int, mode: int = 0o600, *, folder: int | None = None) -> int:
    """A descriptor of the regular file `path`; NotRegular when it is none, OSError as of `os.open`. Never waits.

    `flags` as of `os.open`. What is not regular is left as it was, O_TRUNC apart, which must not be among them.
    `folder`: a descriptor of the folder of that file, which is not looked up by its name then.
    """
    name = path if folder is None else path.name
    try:
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in _IN_PLACE_OF_A_FILE:
            raise not_regular(path, "is no regular file") from None
        error.filename = str(path)
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise not_regular(path, "is no regular file")
    return descriptor


def not_regular(path: Path, otherwise: str) -> NotRegular:
    """The error for what stands at `path`: a symbolic link, or what `otherwise` says."""
    return NotRegular(errno.EINVAL, "is a symbolic link" if path.is_symlink() else otherwise, str(path))
