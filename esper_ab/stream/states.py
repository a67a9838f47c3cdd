"""The states of the code of a stream: sealed into a repository of its own, which needs no other to be checked out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from esper_ab.code_trees.git import GitFailed
from esper_ab.code_trees.sealing import seal
from esper_ab.code_trees.store import Store
from esper_ab.contracts.code_state import CODE_FOLDER
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.stream.entries import Setup
from esper_ab.stream.question import CANDIDATE

_SHOWN = 3  # paths in a message


def seal_setup(folder: Path, state_text: str, working_folder: Path, settings: dict[str, object]) -> Setup:
    """Seal a state of the code into the stream's folder; UsageError if there is no such state.

    All of its files are kept here, so it can be checked out again whatever happens to the user's repository.
    """
    sealed_code = seal({CANDIDATE: state_text}, working_folder, kept_folder(folder), [folder])
    (state,) = sealed_code.states
    store = Store(folder_below(folder, CODE_FOLDER).absolute())
    store.make(sealed_code.store.line("rev-parse", "--show-object-format"))
    store.copy_whole(sealed_code.store, state.sealed, state.commit)
    return Setup(
        code=state.sealed,
        code_words=state.words,
        tree=sealed_code.store.line("rev-parse", f"{state.sealed}^{{tree}}"),
        inside=state.inside,
        settings=settings,
    )


def kept_folder(folder: Path) -> Path:
    """Return the folder in which a stream keeps states."""
    return folder.absolute() / CODE_FOLDER


def digests(folder: Path, setup: Setup, paths: Sequence[str], working_folder: Path) -> dict[str, str]:
    """Return a digest for every file at or below `paths`, which are relative to the folder in which runs work."""
    if not paths:
        return {}
    if not setup.code:
        return dict(_file_digests(working_folder, paths))
    store = Store(kept_folder(folder))
    prefix = f"{setup.inside}/" if setup.inside else ""
    try:
        listing = store.git("ls-tree", "-r", "-z", "--full-tree", setup.code, "--", *(prefix + path for path in paths))
    except GitFailed as error:
        raise UsageError(f"unchanged: {error}") from None
    entries = (os.fsdecode(entry).partition("\t") for entry in listing.split(b"\0") if entry)
    return {path.removeprefix(prefix): facts for facts, _, path in entries}


def _file_digests(working_folder: Path, paths: Sequence[str]) -> list[tuple[str, str]]:
    file_digests = []
    for path_text in paths:
        path = working_folder / path_text
        files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        for file in files:
            try:
                digest = hashlib.sha256(read_regular(file)).hexdigest()
            except FileNotFoundError:
                continue
            except OSError as error:
                raise UsageError(f"{file}: {error.strerror}") from None
            file_digests.append((file.relative_to(working_folder).as_posix(), digest))
    return file_digests


def check_declared(paths: Sequence[str], file_digests: dict[str, str]) -> None:
    """Raise UsageError unless there is a file at or below each path."""
    for path in paths:
        plain_path = path.rstrip("/")
        if not any(file == plain_path or file.startswith(f"{plain_path}/") for file in file_digests):
            raise UsageError(f"unchanged: {path}: there is no such file in the incumbent's code")


def changed_words(before: dict[str, str], after: dict[str, str]) -> str:
    """Say which of the files that must stay as they are differ; "" if none does."""
    paths = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    if not paths:
        return ""
    more_words = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return f"it changes {', '.join(paths[:_SHOWN])}{more_words}, which the stream declares unchanged"
