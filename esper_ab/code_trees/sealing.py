"""Seal the states of the code that --code names, in a temporary folder, before a plan is made."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from esper_ab.code_trees.git import GitFailed, Repository, repository_at
from esper_ab.code_trees.lock_files import lock_files
from esper_ab.code_trees.store import Store
from esper_ab.code_trees.trees import check_out_trees, keep_code
from esper_ab.code_trees.working_tree import seal_folder, seal_working_tree
from esper_ab.contracts.code_state import CODE_FOLDER, StateOfCode, is_folder
from esper_ab.contracts.errors import SettingName, UsageError
from esper_ab.contracts.files_below import make_folder
from esper_ab.contracts.machine import Questions
from esper_ab.contracts.private_folder import private_folder, remove_private
from esper_ab.contracts.wording import close_names, did_you_mean


@dataclass(frozen=True, eq=False)
class SealedCode:
    """Sealed states with their trees, in a temporary folder that is removed with this object."""

    store: Store
    states: tuple[StateOfCode, ...]

    def keep(self, experiment_dir: Path) -> None:
        """Copy states that are no commits of the user's; the trees were needed by the rehearsal only."""
        if any(state.kept for state in self.states):
            keep_code(experiment_dir, self.store)
        self.store.remove_trees()

    def tree_hash(self, commit: str) -> str:
        """Return the hash of a sealed commit's files, whatever its history."""
        return self.store.line("rev-parse", f"{commit}^{{tree}}")

    def asked_in(self, questions: Questions) -> Questions:
        """Return the preflight's questions about a trainer in each of the states."""
        assert questions.trainer is not None, "only trainers have states of the code"
        trainer = msgspec.structs.replace(
            questions.trainer, states=self.states, states_in=str(self.store.folder.parent)
        )
        return msgspec.structs.replace(questions, trainer=trainer)


def seal(
    code: Mapping[str, str], working_folder: Path, kept_folder: Path | None, excluded: Sequence[Path]
) -> SealedCode:
    """Seal the states `code`, by group, for somebody who starts runs in `working_folder`, and check out their files.

    `kept_folder`: the folder that an earlier experiment keeps states in, which may have some of these. `excluded`:
    folders with results, whose untracked files are no part of a state. Raises UsageError if a state does not exist.
    """
    sealed = _seal(code, working_folder, kept_folder, excluded)
    check_out_trees(sealed.store, sealed.states)
    return sealed


def states_now(code: Mapping[str, str], working_folder: Path, excluded: Sequence[Path]) -> tuple[StateOfCode, ...]:
    """Return the states `code` as `seal` would seal them now, without keeping anything; raises as `seal` does."""
    return _seal(code, working_folder, None, excluded).states


def folder_hash(folder: Path, excluded: Sequence[Path]) -> str:
    """Return the hash of the files in a folder that `seal` would seal now; raises as `seal` does."""
    sealed = _seal({"run": str(folder)}, folder, None, excluded)
    return sealed.tree_hash(sealed.states[0].sealed)


def _seal(
    code: Mapping[str, str], working_folder: Path, kept_folder: Path | None, excluded: Sequence[Path]
) -> SealedCode:
    folder = private_folder().resolve()
    store = Store(folder / CODE_FOLDER)
    make_folder(store.folder)
    weakref.finalize(store, remove_private, folder)
    sealing = _Sealing(store, working_folder.resolve(), kept_folder, tuple(path.resolve() for path in excluded))
    return SealedCode(store, tuple(sealing.state(group, state_text) for group, state_text in code.items()))


@dataclass(frozen=True)
class _Sealing:
    """States that are sealed into one store."""

    store: Store
    working_folder: Path
    kept_folder: Path | None
    excluded: tuple[Path, ...]

    def state(self, group: str, state_text: str) -> StateOfCode:
        try:
            if is_folder(state_text):
                return self._seal_folder(group, state_text)
            return self._seal_commit(group, state_text)
        except GitFailed as error:
            raise UsageError(_named(group, state_text), f": {error}") from None

    def _seal_folder(self, group: str, state_text: str) -> StateOfCode:
        folder = Path(state_text).expanduser().resolve()
        if not folder.is_dir():
            raise UsageError(_named(group, state_text), ": there is no such folder")
        repository = repository_at(folder)
        if repository is None:
            self.store.make()
            sealed = seal_folder(folder, self.store, self.excluded)
            return self._described(group, state_text, folder, "", ("", sealed))
        self._open(repository)
        commits = seal_working_tree(repository, self.store, self.excluded)
        return self._described(group, state_text, repository.top, _inside(folder, repository.top), commits)

    def _seal_commit(self, group: str, state_text: str) -> StateOfCode:
        repository = repository_at(self.working_folder)
        if repository is None:
            raise UsageError(
                _named(group, state_text),
                f": {self.working_folder} is in no git repository, where {state_text} would name a "
                f"commit; start from inside one, or name a folder, as in {group}=./{state_text}",
            )
        self._open(repository)
        commit = repository.commit_of(state_text) or self._kept_commit(state_text)
        if not commit:
            raise UsageError(_named(group, state_text), f": {_no_commit(repository, state_text, self.working_folder)}")
        inside = _inside(self.working_folder, repository.top)
        described = self._described(group, state_text, repository.top, inside, (self._parent_if_ours(commit), commit))
        is_exact = state_text == commit  # as in the experiment file of a plan, which is repeated as it was
        if is_exact or commit != repository.commit_of("HEAD"):
            return described
        changes = repository.git("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no")
        return msgspec.structs.replace(described, left_out=changes.count(b"\0"))

    def _open(self, repository: Repository) -> None:
        self.store.make(repository.line("rev-parse", "--show-object-format"))
        self.store.read_also([repository])

    def _kept_commit(self, state_text: str) -> str:
        """Return the commit that an earlier experiment has sealed; "" if it keeps none of this name."""
        if self.kept_folder is None or not (self.kept_folder / "repository" / "objects").is_dir():
            return ""
        earlier = Store(self.kept_folder)
        try:
            commit = earlier.line("rev-parse", "--quiet", "--verify", f"{state_text}^{{commit}}")
        except GitFailed:
            return ""
        self.store.copy_objects(earlier)
        return commit

    def _parent_if_ours(self, commit: str) -> str:
        """Return the commit itself or, if it was made by `Store.commit`, the one that it adds changes to."""
        author, _, parents = self.store.line("show", "--no-patch", "--format=%ae %P", commit).partition(" ")
        return parents if author == "esper-ab@localhost" else commit

    def _described(self, group: str, state_text: str, top: Path, inside: str, commits: tuple[str, str]) -> StateOfCode:
        commit, sealed = commits
        changed = 0
        changes_sha256 = ""
        if commit and commit != sealed:
            difference = self.store.git("diff-tree", "-r", "-z", "--no-renames", commit, sealed)
            changed = difference.count(b"\0") // 2  # an entry has its facts and its path
            changes_sha256 = hashlib.sha256(difference).hexdigest()
        try:
            locks = lock_files(self.store, sealed, inside)
        except GitFailed:
            raise UsageError(_named(group, state_text), f": it has no folder {inside}, in which you are") from None
        return StateOfCode(
            group=group,
            asked=state_text,
            commit=commit,
            sealed=sealed,
            changed=changed,
            changes_sha256=changes_sha256,
            top=str(top),
            inside=inside,
            locks=locks,
        )


def _named(group: str, state_text: str) -> SettingName:
    """Name a state in a message."""
    return SettingName("code", f"{group}={state_text}")


def _inside(folder: Path, top: Path) -> str:
    inside = folder.relative_to(top.resolve()).as_posix()
    return "" if inside == "." else inside


def _no_commit(repository: Repository, state_text: str, folder: Path) -> str:
    """Say that a repository has no commit of this name, and what may have been meant."""
    names = repository.line("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags", "refs/remotes")
    remote = [name for name in names.splitlines() if name.endswith(f"/{state_text}")]
    if remote:
        remedy = f"did you mean {remote[0]}?"
    elif (folder / state_text).is_dir():
        remedy = f"for the folder, write ./{state_text}"
    elif close_names(state_text, names.splitlines(), 1):
        remedy = did_you_mean(state_text, names.splitlines())
    else:
        remedy = "`git branch --all` and `git tag` list what there is; `git fetch` gets what only the server has"
    return f"{repository.top} has no commit, branch or tag {state_text!r}; {remedy}"
