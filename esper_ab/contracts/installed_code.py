"""One hash of the installed code, which distinguishes states that no commit holds."""

from __future__ import annotations

import functools
import hashlib

from esper_ab.contracts.own_packages import folder

_PACKAGES = ("esper_ab", "workers")
_SOURCES = (".py", ".npz")
_SHOWN = 16  # hexadecimal digits


def sources() -> str:
    """Return a shortened sha256 over names and contents of all modules of both packages and the data shipped with them.

    Reads the files on disk now, which are those that a process started now will import.
    """
    whole = hashlib.sha256()
    for package in _PACKAGES:
        root = folder(package)
        for path in sorted(path for path in root.rglob("*") if path.suffix in _SOURCES):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            whole.update(f"{package}/{path.relative_to(root).as_posix()} {content}\n".encode())
    return whole.hexdigest()[:_SHOWN]


@functools.cache
def sources_imported() -> str:
    """Return `sources()` as of the first call in this process.

    Threads that start later use the modules imported by then, even if the files are edited meanwhile.
    """
    return sources()
