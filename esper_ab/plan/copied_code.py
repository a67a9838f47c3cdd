"""Where copies of users' code lie in an experiment directory, and how they are made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from esper_ab.contracts.source_files import copy_files, source_sha256

REWARDS_FOLDER = "rewards"
TRAINER_FOLDER = "trainer"
SHOWN_CHARS = 12  # digits of the hash that name a subfolder


def folder_of(kept_folder: str, sha256: str) -> str:
    return f"{kept_folder}/{sha256[:SHOWN_CHARS]}"


def copy_code(root: Path, files: Sequence[str], sha256: str, target: Path) -> bool:
    """Copy `files` from `root` to `target`, unless the folders are equal; return whether the files match `sha256`."""
    try:
        if target != root:
            copy_files(root, files, target)
        return source_sha256(target, files) == sha256
    except FileNotFoundError:
        return False
