"""Copying and hashing a user's source files; hashes are equal exactly when all names and contents are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from esper_ab.contracts.below import write_below
from esper_ab.contracts.regular_file import read_regular


def source_sha256(root: Path, files: Iterable[str]) -> str:
    """Return the sha256 over names and contents of `files`, relative to `root`. OSError when one cannot be read."""
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(f"{file} {hashlib.sha256(read_regular(root / file)).hexdigest()}\n".encode())
    return whole.hexdigest()


def copy_files(root: Path, files: Sequence[str], target: Path) -> None:
    """Copy `files`, relative to `root`, to the same places below the folder `target`. OSError when one cannot be."""
    for file in files:
        write_below(target, file, read_regular(root / file))
