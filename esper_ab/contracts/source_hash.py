"""One hash for the files of a user's code: two of them are equal when all files are, by name and content."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path


def source_sha256(root: Path, files: Sequence[str]) -> str:
    """sha256 over names and contents of `files`, which lie below `root`. OSError where one cannot be read."""
    whole = hashlib.sha256()
    for file in sorted(files):
        whole.update(f"{file} {hashlib.sha256((root / file).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
