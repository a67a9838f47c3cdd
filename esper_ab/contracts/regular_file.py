"""Open files that others may have replaced, for example by a link, a named pipe or a device.

An ordinary open follows links and blocks on a pipe, and an ordinary read of a device never ends. Every file that is
not ours is read by `open_to_read` or `read_regular` (tests/house/test_house.py).
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path

LARGEST_BYTES = 1 << 30  # default limit for a file that is read in one go

_IN_PLACE_OF_A_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})  # a link; a folder; a pipe, socket or device


class NotRegular(OSError):
    """A path is not a regular file or folder as expected; `strerror` is a predicate, such as "is a symbolic link"."""


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open the regular file `path` without blocking, and return a descriptor.

    Raises NotRegular for anything else, and OSError as `os.open` does. `flags` are for `os.open`; O_TRUNC is not
    allowed, because the file would be emptied before the check.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno in _IN_PLACE_OF_A_FILE:
            raise not_regular(path, "is not a regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise not_regular(path, "is not a regular file")
    return descriptor


def open_to_read(path: Path, buffer_bytes: int = io.DEFAULT_BUFFER_SIZE) -> io.BufferedReader:
    """Open `path` for reading, without blocking. Links are followed, because users link to their own files.

    Raises NotRegular for a pipe or a device, and OSError as `os.open` does.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise NotRegular(errno.EINVAL, "is not a regular file", str(path))
    return io.BufferedReader(io.FileIO(descriptor), buffer_bytes)


def read_regular(path: Path, most_bytes: int = LARGEST_BYTES) -> bytes:
    """Return the content of the regular file `path`.

    Raises OSError as `open_to_read` does, and if the file is larger than `most_bytes`.
    """
    with open_to_read(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise OSError(errno.EFBIG, f"is larger than {most_bytes >> 20} MiB", str(path))
        return file.read(size)  # not most_bytes, which Python would allocate at once


def not_regular(path: Path, default_words: str) -> NotRegular:
    """Return the error for `path`; its `strerror` is "is a symbolic link" if that is so, else `default_words`."""
    return NotRegular(errno.EINVAL, "is a symbolic link" if path.is_symlink() else default_words, str(path))
