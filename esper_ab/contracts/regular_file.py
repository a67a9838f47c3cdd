"""Open files that others may have made or replaced, by a link, a named pipe, a device or whatever else.

An ordinary open follows a link to somebody's file and blocks on a pipe, and an ordinary read of a device has no end.
Every file that is not ours is read by `open_to_read` or `read_regular` (tests/house/test_house.py).
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

LARGEST_BYTES = 1 << 30  # of a file that is read at once, unless its reader knows better

_IN_PLACE_OF_A_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})  # a link, a folder; a pipe, socket or device


class NotRegular(OSError):
    """Something else stands where a regular file or a folder is expected; `strerror` says so, beginning with "is"."""


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of the regular file `path`; NotRegular when it is none, OSError as of `os.open`. Never waits.

    `flags` as of `os.open`. What is not regular is left as it was, O_TRUNC apart, which must not be among them.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in _IN_PLACE_OF_A_FILE:
            raise not_regular(path, "is no regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise not_regular(path, "is no regular file")
    return descriptor


def open_to_read(path: Path, buffer_bytes: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open `path` for reading; links are followed. NotRegular for a pipe or a device, else OSError. Never blocks.

    Reading a file is harmless where writing is not, and users link to their own files.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise NotRegular(errno.EINVAL, "is no regular file", str(path))
    return io.BufferedReader(io.FileIO(descriptor), buffer_bytes)


def read_regular(path: Path, most_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the content of the regular file at `path`; OSError as `open_to_read`, and for more than `most_bytes`."""
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"is larger than {most_bytes >> 20} MiB", str(path))
        return file.read(size)  # not of the largest size, which Python would allocate at once


def not_regular(path: Path, otherwise: str) -> NotRegular:
    """The error for what stands at `path`: a symbolic link, or what `otherwise` says."""
    return NotRegular(errno.EINVAL, "is a symbolic link" if path.is_symlink() else otherwise, str(path))
