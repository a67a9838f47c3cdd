"""The files of sealed states in an experiment's directory: one folder per group, while its runs train."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from esper_ab.code_trees.git import GitFailed, Repository, repository_at
from esper_ab.code_trees.store import Store
from esper_ab.contracts.code_state import CODE_FOLDER, StateOfCode
from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import folder_below, remove_folder_below
from esper_ab.contracts.run_files import plain_group


def check_out_trees(store: Store, states: Sequence[StateOfCode]) -> None:
    """Write the files of each state, with its submodules, anew; UsageError if git cannot."""
    store.remove_trees()
    for state in states:
        folder = store.trees / plain_group(state.group)
        try:
            _write_files(store, state.sealed, folder, repository_at(Path(state.top)))
        except GitFailed as error:
            raise UsageError(f"group {state.group!r}: the files of {state.words} cannot be written: {error}") from None


def _write_files(store: Store, commit: str, folder: Path, repository: Repository | None) -> None:
    """Write the files of a commit and of its submodules; `repository`: where the submodules are checked out."""
    store.check_out(commit, folder)
    for path, submodule_commit in store.submodules(commit).items():
        submodule = repository_at(repository.top / path) if repository is not None else None
        if submodule is None or submodule.top != (repository.top / path if repository else None):
            raise UsageError(
                f"the submodule {path} is not checked out; `git submodule update --init --recursive` does that"
            )
        if not submodule.commit_of(submodule_commit):
            raise UsageError(
                f"the submodule {path} does not have its commit {submodule_commit[:7]}; `git -C {path} fetch` "
                "may get it"
            )
        store.read_also([submodule])
        _write_files(store, submodule_commit, folder / path, submodule)


def keep_code(experiment_dir: Path, sealed: Store) -> None:
    """Copy what is sealed into an experiment's directory."""
    store = _kept_store(experiment_dir)
    store.make(sealed.line("rev-parse", "--show-object-format"))
    store.copy_objects(sealed)


@contextmanager
def trees_present(experiment_dir: Path, states: Sequence[StateOfCode]) -> Iterator[None]:
    """Inside this context, an experiment's directory has the files of its states; raises as `make_trees` does."""
    make_trees(experiment_dir, states)
    try:
        yield
    finally:
        remove_trees(experiment_dir)


def _kept_store(experiment_dir: Path) -> Store:
    return Store(folder_below(experiment_dir, CODE_FOLDER).absolute())


def make_trees(experiment_dir: Path, states: Sequence[StateOfCode]) -> None:
    """Check the states out anew, from what the directory keeps and the user's repositories.

    Raises UsageError if a commit is no longer anywhere.
    """
    store = _kept_store(experiment_dir)
    repositories = {}
    for state in states:
        repository = repository_at(Path(state.top)) if Path(state.top).is_dir() else None
        if repository is not None:
            repositories[state.top] = repository
    formats = {len(state.sealed) for state in states}
    store.make("sha256" if 64 in formats else "sha1")
    store.read_also(repositories.values())
    for state in states:
        if not store.has_commit(state.sealed):
            raise UsageError(
                f"{experiment_dir}: commit {state.sealed[:12]} of group {state.group!r} ({state.words}) is no longer "
                f"in {state.top}; put the repository back, or fetch the commit there, then resume"
            )
    check_out_trees(store, states)


def remove_trees(experiment_dir: Path) -> None:
    """Remove the files of all states; what cannot be had from the user's repository again is kept."""
    if not (experiment_dir / CODE_FOLDER).is_dir():
        return
    store = _kept_store(experiment_dir)
    store.remove_trees()
    if not store.has_own_objects():
        remove_folder_below(experiment_dir, CODE_FOLDER)
