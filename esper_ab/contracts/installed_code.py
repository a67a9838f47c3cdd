"""One hash for the code itself: it tells states of it apart that no commit holds."""

from __future__ import annotations

import functools
import hashlib

from esper_ab.contracts.own_packages import folder

_PACKAGES = ("esper_ab", "workers")
_SOURCES = (".py", ".npz")
_SHOWN = 16  # hexadecimal digits


def sources() -> str:
    """sha256, shortened, over names and contents of all modules of both packages and of the data that ships with them.

    As they lie on disk now: what a process that starts now will import.
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
    """`sources` when this process first asked: what a thread that starts later works with, whatever is edited."""
    return sources()
