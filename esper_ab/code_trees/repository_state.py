"""Describes the state of a user's repository without keeping it: its commit, and a hash of what differs from it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from esper_ab.code_trees.git import Repository, repository_at
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.regular_file import read_regular

_CHANGED = ("diff", "--name-only", "--no-ext-diff", "--no-renames", "-z", "HEAD")
_NEW_CODE = ("ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", "*.py")


def repository_state(folder: Path) -> dict[str, str]:
    """Return `commit` and, if files differ from it, their number as `changed` and a hash of them as `changes`.

    These are tracked files and new files of Python code that git does not ignore. Return {} if the folder is in no
    repository with a commit, or if git cannot tell.
    """
    try:
        repository = repository_at(folder)
        commit = repository.commit_of("HEAD") if repository is not None else ""
        if repository is None or not commit:
            return {}
        names = sorted({*_names(repository, _CHANGED), *_names(repository, _NEW_CODE)})
        if not names:
            return {"commit": commit}
        return {"commit": commit, "changed": str(len(names)), "changes": _sha256(repository.top, names)}
    except (OSError, UsageError):
        return {}


def _names(repository: Repository, arguments: Iterable[str]) -> list[str]:
    return [os.fsdecode(name) for name in repository.git(*arguments).split(b"\0") if name]


def _sha256(top: Path, names: Iterable[str]) -> str:
    """Return the sha256 over names and contents; a file that is gone, or is no regular one, has no content."""
    digest = hashlib.sha256()
    for name in names:
        try:
            content = hashlib.sha256(read_regular(top / name)).hexdigest()
        except OSError:
            content = ""
        digest.update(os.fsencode(f"{name} {content}\n"))
    return digest.hexdigest()
