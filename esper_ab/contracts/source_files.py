"""Copy and hash a user's source files; hashes are equal exactly if all names and contents are equal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.regular_file import read_regular


def source_sha256(root: Path, files: Iterable[str]) -> str:
    """Return the sha256 over names and contents of `files`, relative to `root`; OSError if a file cannot be read."""
    return sha256_of((file, read_regular(root / file)) for file in sorted(files))


def sha256_of(files: Iterable[tuple[str, bytes]]) -> str:
    """Return the sha256 over names and contents."""
    sha = hashlib.sha256()
    for name, content in files:
        sha.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return sha.hexdigest()


def copy_files(root: Path, files: Sequence[str], target: Path) -> None:
    """Copy `files`, relative to `root`, to the same relative paths below `target`; OSError if a copy fails."""
    for file in files:
        write_below(target, file, read_regular(root / file))
