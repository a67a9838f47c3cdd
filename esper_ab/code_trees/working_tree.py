"""Seals a folder as it is now: a working tree with its uncommitted changes, or a folder outside any repository.

Untracked files are included unless .gitignore names them. The user's index is not touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from esper_ab.code_trees.git import GitFailed, Repository, git
from esper_ab.code_trees.store import Store
from esper_ab.contracts.errors import UsageError

MOST_UNTRACKED_BYTES = 256 << 20
_INDEX = "index-of-a-seal"


def seal_working_tree(repository: Repository, store: Store, excluded: Sequence[Path]) -> tuple[str, str]:
    """Return HEAD, "" before the first commit, and the commit with the files as they are now.

    `excluded`: folders whose untracked files are left out. Raises UsageError for changes inside a submodule, and for
    large untracked files.
    """
    _refuse_changed_submodules(repository)
    head = repository.commit_of("HEAD")
    index = store.folder / _INDEX
    own_index = repository.path("index")
    if own_index.is_file():
        shutil.copy2(own_index, index)  # its own time tells git which files may have changed in the same moment
    variables = {
        "GIT_INDEX_FILE": str(index),
        "GIT_OBJECT_DIRECTORY": str(store.objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repository.path("objects").resolve()),
    }
    try:
        repository.git("add", "--update", variables=variables)
        untracked = _untracked(repository.top, repository.git(*_LIST_UNTRACKED, variables=variables), excluded)
        _add(repository, untracked, variables)
        tree = repository.git("write-tree", variables=variables).decode().strip()
        if head and tree == repository.line("rev-parse", f"{head}^{{tree}}"):
            return head, head
        return head, store.commit(tree, head)
    except GitFailed as error:
        raise UsageError(f"{repository.top}: its files cannot be copied: {error}") from None
    finally:
        index.unlink(missing_ok=True)


_LIST_UNTRACKED = ("ls-files", "--others", "--exclude-standard", "-z")


def seal_folder(folder: Path, store: Store, excluded: Sequence[Path]) -> str:
    """Return the commit with the files of a folder that is in no repository; raises as `seal_working_tree` does."""
    index = store.folder / _INDEX
    place = [f"--git-dir={store.repository}", f"--work-tree={folder}"]
    variables = {"GIT_INDEX_FILE": str(index)}
    try:
        listing = git(["-C", str(folder), *place, *_LIST_UNTRACKED], variables)
        paths = _untracked(folder, listing, excluded)
        git(["-C", str(folder), *place, *_UPDATE], variables, b"\0".join(map(os.fsencode, paths)))
        tree = git([*place, "write-tree"], variables).decode().strip()
        return store.commit(tree, "")
    except GitFailed as error:
        raise UsageError(f"{folder}: its files cannot be copied: {error}") from None
    finally:
        index.unlink(missing_ok=True)


_UPDATE = ("update-index", "--add", "-z", "--stdin")


def _add(repository: Repository, paths: Sequence[str], variables: dict[str, str]) -> None:
    repository.git(*_UPDATE, variables=variables, data=b"\0".join(map(os.fsencode, paths)))


def _untracked(top: Path, listing: bytes, excluded: Sequence[Path]) -> list[str]:
    """Return untracked files without those below `excluded` and nested repositories; UsageError if they are large."""
    paths = [path for path in _kept(top, map(os.fsdecode, listing.split(b"\0")), excluded)]
    sizes = {path: (top / path).lstat().st_size for path in paths}
    if sum(sizes.values()) > MOST_UNTRACKED_BYTES:
        largest = max(sizes, key=sizes.__getitem__)
        raise UsageError(
            f"{top}: untracked files have {sum(sizes.values()) >> 20} MiB, {largest} {sizes[largest] >> 20} of them, "
            f"and at most {MOST_UNTRACKED_BYTES >> 20} MiB are copied; add to .gitignore what your runs do not read"
        )
    return paths


def _kept(top: Path, paths: Iterator[str], excluded: Sequence[Path]) -> Iterator[str]:
    for path in paths:
        is_nested_repository = path.endswith("/")
        if path and not is_nested_repository and not any((top / path).is_relative_to(folder) for folder in excluded):
            yield path


def _refuse_changed_submodules(repository: Repository) -> None:
    """Raise UsageError for a submodule with changes that no commit has."""
    status = repository.git("status", "--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=none")
    for entry in os.fsdecode(status).split("\0"):
        kind, _, facts = entry.partition(" ")
        fields = facts.split(" ", 7 if kind == "1" else 8)
        if kind in ("1", "2") and fields[1].startswith("S") and {"M", "U"} & {*fields[1][2:]}:
            raise UsageError(
                f"{repository.top}: the submodule {fields[-1]} has changes that are not committed, but submodules are "
                "copied by their commits; commit them there"
            )
