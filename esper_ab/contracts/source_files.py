"""Copying and hashing a user's source files; hashes are equal exactly when all names and contents are."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path


def source_sha256(root: Path, files: Iterable[str]) -> str:
    """Return the sha256 over names and contents of `files`, relative to `root`. OSError when one cannot be read."""
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(f"{file} {hashlib.sha256((root / file).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def copy_files(root: Path, files: Sequence[str], target: Path) -> None:
    """Copy `files`, relative to `root`, to the same places below `target`. OSError when a file cannot be copied."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, target / file)
