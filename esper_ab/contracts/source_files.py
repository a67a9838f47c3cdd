"""Copy and hash a user's source files, and hash the installed code."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from esper_ab.contracts.files import read_regular, write_below
from esper_ab.contracts.own_packages import folder

# --- source files ----------------------------------------------------------------------------------------------------
# Copy and hash a user's source files; hashes are equal exactly if all names and contents are equal.


def source_sha256(root: Path, files: Iterable[str]) -> str:
    """Return the sha256 over names and contents of `files`, relative to `root`; OSError if a file cannot be read."""
    return _sha256((file, read_regular(root / file)) for file in sorted(files))


def _sha256(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the sha256 over names and contents."""
    whole = hashlib.sha256()
    for name, content in files:
        whole.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def copy_files(root: Path, files: Sequence[str], target: Path) -> None:
    """Copy `files`, relative to `root`, to the same relative paths below `target`; OSError if a copy fails."""
    for file in files:
        write_below(target, file, read_regular(root / file))


# --- installed code --------------------------------------------------------------------------------------------------
# One hash of the installed code, which also distinguishes states that were never committed.


_PACKAGES = ("esper_ab", "workers")
_SOURCES = (".py", ".npz", ".cpp", ".h", ".map", ".so")
_SHOWN = 16  # hexadecimal digits


def sources() -> str:
    """Return `hash_sources` of both packages as they are on disk now; a new process would import this code."""
    return hash_sources(folder(package) for package in _PACKAGES)


def hash_sources(packages: Iterable[Path]) -> str:
    """Return a shortened sha256 over names and contents of all modules, kernel sources, libraries and data files."""
    return _sha256(
        (f"{root.name}/{path.relative_to(root).as_posix()}", path.read_bytes())
        for root in packages
        for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES)
    )[:_SHOWN]


@functools.cache
def sources_imported() -> str:
    """Return `sources()` as of the first call in this process.

    Threads that start later use the modules that were imported by then, even if files have been edited since.
    """
    return sources()
