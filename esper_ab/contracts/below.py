"""Files below a folder, such as an experiment directory: opened for writing, replaced and removed, behind no link.

An experiment directory may come from somebody else, or be open to others for writing. `root` is the user's own choice
and may be a link. Every name below it has to be a folder, and the last one a regular file: each is opened from the
descriptor of the folder above, so that nothing is exchanged for a link between a look and an act.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from esper_ab.contracts.regular_file import NotRegular, not_regular, open_regular

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILES_MODE = 0o644


def open_below(root: Path, name: str | PurePath, flags: int, mode: int = _FILES_MODE) -> int:
    """A descriptor of the regular file `name` below `root`, with O_CREAT made with its folders.

    NotRegular when it is none or lies behind a link, OSError as of `os.open`. `flags` without O_TRUNC.
    """
    with _above(root, name, make=bool(flags & os.O_CREAT)) as folder:
        return open_regular(root / name, flags, mode, folder=folder)


def write_below(root: Path, name: str | PurePath, data: bytes) -> None:
    """Replace a file by `data`, so that a reader sees the old bytes or the new ones; OSError leaves the old ones."""
    with _above(root, name, make=True) as folder:
        _replace(folder, root / name, data, synced=False)


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


def write_synced_below(root: Path, name: str | PurePath, data: bytes) -> None:
    """As `write_below`; file and folders are on the disk afterwards. One writer per file at a time.

    What a killed writer of this file left behind is removed.
    """
    path = root / name
    with _above(root, name, make=True) as folder:
        _remove_leftovers(folder, path)
        _replace(folder, path, data, synced=True)
        os.fsync(folder)


def remove_below(root: Path, name: str | PurePath) -> None:
    """Remove the file `name` below `root`, if there is one; a link is removed itself. NotRegular behind a link."""
    with suppress(FileNotFoundError), _above(root, name, make=False) as folder:
        os.unlink(PurePath(name).name, dir_fd=folder)


def remove_folder_below(root: Path, name: str | PurePath) -> None:
    """Remove the folder `name` below `root` with all that is in it, if there is one. NotRegular for a link."""
    if (root / name).is_symlink():
        raise not_regular(root / name, "")
    with suppress(FileNotFoundError), _above(root, name, make=False) as folder:
        shutil.rmtree(PurePath(name).name, dir_fd=folder)


def remove_empty_below(root: Path, name: str | PurePath) -> bool:
    """Remove the folder `name` below `root` if it is empty; whether it is gone. NotRegular behind a link."""
    try:
        with _above(root, name, make=False) as folder:
            os.rmdir(PurePath(name).name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR, errno.EBUSY):
            return False
        raise
    return True


def make_folder(path: Path, *, exist_ok: bool = True) -> None:
    """Make a folder that the user names, with its parents; their names are on the disk afterwards. OSError."""
    if not path.parent.exists():
        make_folder(path.parent)
    try:
        path.mkdir()
    except FileExistsError:
        if exist_ok and path.is_dir():
            return
        raise
    with removed_on_failure(path):
        parent = os.open(path.parent, _FOLDER)
        try:
            os.fsync(parent)
        finally:
            os.close(parent)


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
    with _above(root, PurePath(name, "any"), make=True):
        return root / name


def check_no_links(root: Path, folders: tuple[str, ...]) -> None:
    """NotRegular when one of `folders` of `root`, or anything below it, is a symbolic link."""
    for folder in folders:
        if (root / folder).is_symlink():
            raise not_regular(root / folder, "")
        for at, below, files in os.walk(root / folder):
            for entry in (*below, *files):
                if (path := Path(at, entry)).is_symlink():
                    raise not_regular(path, "")


@contextmanager
def _above(root: Path, name: str | PurePath, *, make: bool) -> Iterator[int]:
    """A descriptor of the folder that has `name`; `make`: folders that are missing are made, and their names synced."""
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise NotRegular(errno.EINVAL, f"is not below {root}", str(name))
    folder, at = os.open(root, _FOLDER), root
    try:
        for part in PurePath(name).parts[:-1]:
            at /= part
            below = _enter(folder, at, make=make)
            os.close(folder)
            folder = below
        yield folder
    finally:
        os.close(folder)


def _enter(above: int, path: Path, *, make: bool) -> int:
    for missing in (make, False):
        try:
            return os.open(path.name, _FOLDER | os.O_NOFOLLOW, dir_fd=above)
        except FileNotFoundError as error:
            if not missing:
                error.filename = str(path)
                raise
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise not_regular(path, "is no folder") from None
            raise
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(path.name, dir_fd=above)
            os.fsync(above)
    raise AssertionError("the second try returns or raises")


class _Unnamed:
    """A temporary file beside the one whose place it will take."""

    def __init__(self, folder: int, path: Path) -> None:
        self._folder, self._path = folder, path
        self._temporary = f".{path.name}.{os.getpid()}-{int.from_bytes(os.urandom(6))}"
        with self._named():
            self._descriptor = os.open(
                self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILES_MODE, dir_fd=folder
            )

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        with self._named():
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]  # a full disk shortens a write without an error

    def name(self, *, synced: bool) -> None:
        with self._named():
            if synced:
                os.fsync(self._descriptor)
            os.replace(self._temporary, self._path.name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._close()

    def discard(self) -> None:
        self._close()
        with suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._folder)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            error.filename = str(self._path)  # unset when a write fails, else that of the temporary file
            raise


def _remove_leftovers(folder: int, path: Path) -> None:
    for leftover in [entry.name for entry in os.scandir(folder) if entry.name.startswith(f".{path.name}.")]:
        with suppress(FileNotFoundError):
            os.unlink(leftover, dir_fd=folder)


def _replace(folder: int, path: Path, data: bytes, *, synced: bool) -> None:
    unnamed = _Unnamed(folder, path)
    try:
        unnamed.write(data)
        unnamed.name(synced=synced)
    except BaseException:
        unnamed.discard()
        raise
