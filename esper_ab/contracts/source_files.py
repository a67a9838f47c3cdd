"""Files of a user's code: copied, and hashed so that two hashes are equal when all files are, by name and content."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path


def source_sha256(root: Path, files: Iterable[str]) -> str:
    """sha256 over names and contents of `files`, which lie below `root`. OSError where one cannot be read."""
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(f"{file} {hashlib.sha256((root / file).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def copy_files(root: Path, files: Sequence[str], target: Path) -> None:
    """The same files below `target`. OSError where one cannot be read or written."""
    for file in files:
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / file, target / file)
