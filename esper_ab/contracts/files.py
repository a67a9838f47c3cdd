"""Files that others may have made or replaced: opened, written, replaced and removed behind no link."""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

import msgspec

# --- unreadable ------------------------------------------------------------------------------------------------------
# What msgspec raises for bytes that are not what was written: damage has many names, and each has to be caught.


UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)


# --- regular file ----------------------------------------------------------------------------------------------------
# Open files that others may have made or replaced, by a link, a named pipe, a device or whatever else.
#
# An ordinary open follows a link to somebody's file and blocks on a pipe, and an ordinary read of a device has no end.
# Every file that is not ours is read by `open_to_read` or `read_regular` (tests/house/test_house.py).


LARGEST_BYTES = 1 << 30  # of a file that is read at once, unless its reader knows better

_IN_PLACE_OF_A_FILE = frozenset({errno.ELOOP, errno.EISDIR, errno.ENXIO})  # a link, a folder; a pipe, socket or device


class NotRegular(OSError):
    """Something else stands where a regular file or a folder is expected; `strerror` says so, beginning with "is"."""


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """A descriptor of the regular file `path`; NotRegular when it is none, OSError as of `os.open`. Never waits.

    `flags` are those of `os.open` without O_TRUNC, which would empty a file before its kind is known.
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


# --- below -----------------------------------------------------------------------------------------------------------
# Files below a folder, such as an experiment directory: opened for writing, replaced and removed, behind no link.
#
# An experiment directory may have been received from somebody else, with links in it. `root` is the user's own choice
# and may be a link. Every folder below it has to be a folder, and the last name a regular file. An experiment
# directory has mode 0700, so nobody else can exchange a folder for a link between the check and the act.


_FILES_MODE = 0o644
PRIVATE = 0o700  # mode of an experiment directory


def open_below(root: Path, name: str | PurePath, flags: int, mode: int = _FILES_MODE) -> int:
    """Return a descriptor of the regular file `name` below `root`, with O_CREAT made with its folders.

    NotRegular when it is none or lies behind a link, OSError as of `os.open`. `flags` without O_TRUNC.
    """
    path = _path(root, name)
    if flags & os.O_CREAT:
        _make_above(root, path)
    return open_regular(path, flags, mode)


def write_below(root: Path, name: str | PurePath, data: bytes, *, synced: bool = False) -> None:
    """Replace a file by `data`, so that a reader sees the old bytes or the new ones; OSError leaves the old ones.

    `synced`: file and folders are on the disk afterwards, and what a killed writer of this file left behind is removed;
    so one writer per file at a time.
    """
    path = _path(root, name)
    _make_above(root, path)
    for left in [one for one in path.parent.iterdir() if one.name.startswith(f".{path.name}.")] if synced else ():
        left.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{int.from_bytes(os.urandom(6))}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILES_MODE)
        try:
            write_all(descriptor, data)
            if synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # unset when a write fails, else that of the temporary file
        raise
    if synced:
        sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; a full disk shortens a write without an error."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def create_below(root: Path, name: str | PurePath, data: bytes) -> None:
    """Make a file that is not there yet; FileExistsError where anything has its name, any other OSError leaves none."""
    descriptor = open_below(root, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException as error:
        remove_below(root, name)
        if isinstance(error, OSError):
            error.filename = str(root / name)  # unset when a write fails
        raise


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_below(root: Path, name: str | PurePath) -> None:
    """Remove the file `name` below `root`, if there is one; a link is removed itself. NotRegular behind a link."""
    _path(root, name).unlink(missing_ok=True)


def remove_folder_below(root: Path, name: str | PurePath) -> None:
    """Remove the folder `name` below `root` with all that is in it, if there is one. NotRegular for a link."""
    path = _path(root, name)
    if path.is_symlink():
        raise not_regular(path, "")
    with suppress(FileNotFoundError):
        shutil.rmtree(path)  # which follows no link


def remove_empty_below(root: Path, name: str | PurePath) -> bool:
    """Remove the folder `name` below `root` if it is empty; whether it is gone. NotRegular behind a link."""
    try:
        _path(root, name).rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR, errno.EBUSY):
            return False
        raise
    return True


def make_folder(path: Path, *, exist_ok: bool = True, mode: int = 0o777) -> None:
    """Make a folder with its parents; their names are on the disk afterwards. OSError. `mode`: of the last one."""
    if not path.parent.exists():
        make_folder(path.parent)
    try:
        path.mkdir(mode)
    except FileExistsError:
        if exist_ok and path.is_dir():
            return
        raise
    with removed_on_failure(path):
        sync_folder(path.parent)


@contextmanager
def removed_on_failure(folder: Path) -> Iterator[None]:
    """Remove `folder` with all that is in it when what is done meanwhile fails, so that its name is free again."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def folder_below(root: Path, name: str | PurePath) -> Path:
    """Make the folder `name` below `root`, for a library that opens files by their names; NotRegular behind a link."""
    folder = _path(root, PurePath(name, "any")).parent
    make_folder(folder)
    return folder


def check_no_links(root: Path, folders: tuple[str, ...]) -> None:
    """NotRegular when one of `folders` of `root`, or anything below it, is a symbolic link."""
    for folder in folders:
        if (root / folder).is_symlink():
            raise not_regular(root / folder, "")
        for at, below, files in os.walk(root / folder):
            for entry in (*below, *files):
                if (path := Path(at, entry)).is_symlink():
                    raise not_regular(path, "")


def _path(root: Path, name: str | PurePath) -> Path:
    """Return the path of `name` below `root`; NotRegular where it leads elsewhere, or a folder above it is a link."""
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise NotRegular(errno.EINVAL, f"is not below {root}", str(name))
    folder = root
    for part in PurePath(name).parts[:-1]:
        folder /= part
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise not_regular(folder, "is no folder")
    return root / name


def _make_above(root: Path, path: Path) -> None:
    """Make the folders between `root`, which has to be there, and `path`."""
    if path.parent != root and root.is_dir():
        make_folder(path.parent)


# --- private folder --------------------------------------------------------------------------------------------------
# A folder in the system's temporary place, which nobody else may enter.


_PREFIX = "esper-"
_SHORT_TMP = 60  # characters: a path of a unix socket holds 107 bytes


def private_folder(*, below: int = 0) -> Path:
    """Make one with mode 0700; its owner removes it. One that a killed process has left is left to the system.

    Its path is short enough for sockets; `below`: characters of folders that they lie in.
    """
    long = len(tempfile.gettempdir()) + below > _SHORT_TMP
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp" if long else None))
