"""One hash of the installed code, which also distinguishes states that were never committed."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from pathlib import Path

from esper_ab.contracts.own_packages import folder
from esper_ab.contracts.source_files import sha256_of

_PACKAGES = ("esper_ab", "workers")
# Libraries are none: two installations of the same code may differ in compilers. A plan names the kernel and its build.
_SOURCES = (".py", ".npz", ".cpp", ".h", ".map")
_SHOWN = 16  # hexadecimal digits


def sources() -> str:
    """Return `hash_sources` of both packages as they are on disk now; a new process would import this code."""
    return hash_sources(folder(package) for package in _PACKAGES)


def hash_sources(packages: Iterable[Path]) -> str:
    """Return a shortened sha256 over names and contents of all modules, kernel sources and data files."""
    return sha256_of(_read_sources(packages))[:_SHOWN]


def _read_sources(packages: Iterable[Path]) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file of the packages that has code or data."""
    for root in packages:
        for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES):
            yield f"{root.name}/{path.relative_to(root).as_posix()}", path.read_bytes()


@functools.cache
def sources_imported() -> str:
    """Return `sources()` as of the first call in this process.

    Threads that start later use the modules that were imported by then, even if files have been edited since.
    """
    return sources()
