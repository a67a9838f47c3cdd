"""Where a change begins: the commit at which it left the repository's default branch."""

from __future__ import annotations

from pathlib import Path

from esper_ab.code_trees.git import GitFailed, Repository, repository_at
from esper_ab.contracts.code_state import is_folder
from esper_ab.contracts.errors import UsageError

_USUAL = ("origin/main", "origin/master", "main", "master")  # names of default branches, in the order of preference

_REMEDY = "the base of the gate, a commit or a folder"


def beginning_of(state_text: str, working_folder: Path) -> str:
    """Return the commit at which a state of the code left the default branch of its repository.

    UsageError, which asks for the base, if there is no repository, no default branch or no such commit.
    """
    folder = Path(state_text).expanduser().resolve() if is_folder(state_text) else working_folder.resolve()
    repository = repository_at(folder)
    if repository is None:
        raise UsageError(f"{folder} is in no git repository, so name {_REMEDY}")
    head = repository.commit_of("HEAD" if is_folder(state_text) else state_text)
    if not head:
        missing_words = "commit yet" if is_folder(state_text) else f"commit, branch or tag {state_text!r}"
        raise UsageError(f"{repository.top} has no {missing_words}, so name {_REMEDY}")
    branch = _default_branch(repository)
    if not branch:
        raise UsageError(f"{repository.top} has none of the branches {', '.join(_USUAL)}, so name {_REMEDY}")
    try:
        return repository.line("merge-base", branch, head)
    except GitFailed:
        raise UsageError(
            f"{repository.top}: {branch} and {head[:7]} have no common commit here; `git fetch --unshallow` may get "
            f"it, or name {_REMEDY}"
        ) from None


def _default_branch(repository: Repository) -> str:
    """Return the branch that the server calls its default, else one with a usual name; "" if there is none."""
    try:
        name = repository.line("rev-parse", "--abbrev-ref", "origin/HEAD")
    except GitFailed:
        name = ""
    return next((branch for branch in (name, *_USUAL) if branch and repository.commit_of(branch)), "")
