"""Open for writing, replace and remove files below a folder, such as an experiment directory, without following links.

An experiment directory may come from somebody else, with links in it. `root` is the user's own choice and may be a
link. Everything above the file must be a folder, and the file must be regular. An experiment directory has mode 0700,
so nobody else can replace a folder by a link between the check and the use.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from esper_ab.contracts.regular_file import NotRegular, not_regular, open_regular

_FILES_MODE = 0o644
PRIVATE = 0o700  # mode of an experiment directory


def open_below(root: Path, name: str | PurePath, flags: int, mode: int = _FILES_MODE) -> int:
    """Open the regular file `name` below `root` and return a descriptor.

    With O_CREAT in `flags`, create the file and its folders; O_TRUNC is not allowed. Raises NotRegular if the path is
    not a regular file or leads through a link, and OSError as `os.open` does.
    """
    path = _resolve(root, name)
    if flags & os.O_CREAT:
        _make_parents(root, path)
    return open_regular(path, flags, mode)


def write_below(
    root: Path, name: str | PurePath, data: bytes, *, synced: bool = False, sole_writer: bool = True
) -> None:
    """Replace a file atomically: readers see either the old content or `data`.

    If OSError is raised, the old content is unchanged. If `synced` is true, the file and its folders are flushed to
    disk, and temporary files are removed that were left behind by a killed writer of this file; such a file must have
    only one writer at a time, unless `sole_writer` is false: then these stay.
    """
    path = _resolve(root, name)
    _make_parents(root, path)
    if synced and sole_writer:
        _remove_leftovers(path)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{int.from_bytes(os.urandom(6))}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _FILES_MODE)
        try:
            write_all(descriptor, data)
            if synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        draft.replace(path)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # unset if a write failed, else it names the temporary file
        raise
    if synced:
        sync_folder(path.parent)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`; on a full disk, one call of `os.write` may write only a part, without an error."""
    data_left = memoryview(data)
    while data_left:
        data_left = data_left[os.write(descriptor, data_left) :]


def create_below(root: Path, name: str | PurePath, data: bytes) -> None:
    """Create a new file; raises FileExistsError if the name is taken. After a different OSError, no file is left."""
    descriptor = open_below(root, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException as error:
        remove_below(root, name)
        if isinstance(error, OSError):
            error.filename = str(root / name)  # unset if a write failed
        raise


def sync_folder(folder: Path) -> None:
    """Flush the directory entries of a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_below(root: Path, name: str | PurePath) -> None:
    """Remove the file `name` below `root`, if it exists.

    If `name` itself is a link, the link is removed. Raises NotRegular if a folder above it is a link.
    """
    _resolve(root, name).unlink(missing_ok=True)


def remove_folder_below(root: Path, name: str | PurePath) -> None:
    """Remove the folder `name` below `root` with its content, if it exists; raises NotRegular for a link."""
    path = _resolve(root, name)
    if path.is_symlink():
        raise not_regular(path, "")
    with suppress(FileNotFoundError):
        shutil.rmtree(path)  # does not follow links


def remove_empty_below(root: Path, name: str | PurePath) -> bool:
    """Remove the folder `name` below `root` if it is empty, and return whether it no longer exists.

    Raises NotRegular if a folder above it is a link.
    """
    try:
        _resolve(root, name).rmdir()
    except FileNotFoundError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR, errno.EBUSY):
            return False
        raise
    return True


def make_folder(path: Path, *, exist_ok: bool = True, mode: int = 0o777) -> None:
    """Create a folder and its missing parents, and flush their directory entries to disk; raises OSError.

    `mode` is the mode of the last folder.
    """
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
    """Remove `folder` and its content if the body of this context fails, so that the folder's name is free again."""
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def folder_below(root: Path, name: str | PurePath) -> Path:
    """Create the folder `name` below `root`, for a library that opens files by name.

    Raises NotRegular if the folder or a folder above it is a link, and FileNotFoundError if there is no `root`.
    """
    folder = _resolve(root, PurePath(name, "any")).parent
    if not root.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(root))
    make_folder(folder)
    return folder


def check_no_links(root: Path, folders: tuple[str, ...]) -> None:
    """Raise NotRegular if one of `folders` below `root`, or anything inside it, is a symbolic link."""
    for folder in folders:
        if (root / folder).is_symlink():
            raise not_regular(root / folder, "")
        for parent, subfolders, files in os.walk(root / folder):
            for name in (*subfolders, *files):
                path = Path(parent, name)
                if path.is_symlink():
                    raise not_regular(path, "")


def _resolve(root: Path, name: str | PurePath) -> Path:
    """Return the path of `name` below `root`; raises NotRegular if it leads outside or a folder in it is a link."""
    if PurePath(name).is_absolute() or ".." in PurePath(name).parts:
        raise NotRegular(errno.EINVAL, f"is not below {root}", str(name))
    folder = root
    for part in PurePath(name).parts[:-1]:
        folder /= part
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise not_regular(folder, "is not a folder")
    return root / name


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files that killed writers of the file `path` left behind."""
    for entry in list(path.parent.iterdir()):
        if entry.name.startswith(f".{path.name}."):
            entry.unlink(missing_ok=True)


def _make_parents(root: Path, path: Path) -> None:
    """Create the folders between `root`, which must exist, and `path`."""
    if path.parent != root and root.is_dir():
        make_folder(path.parent)
