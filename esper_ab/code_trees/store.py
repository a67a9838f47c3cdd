"""The git objects of sealed states: an own bare repository, which reads the objects of users' repositories, too.

Nothing is written into a user's repository, so `git worktree list` and `git gc` there know nothing of experiments.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esper_ab.code_trees.git import GitFailed, Repository, git, line
from esper_ab.contracts.code_state import REPOSITORY, TREES
from esper_ab.contracts.files_below import remove_folder_below, write_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.source_files import copy_files

_SUBMODULE = b"160000"
_SHALLOW = "shallow"  # file that lists commits whose parents are not here
_ALTERNATES = "info/alternates"  # file below the objects that lists folders with further objects


@dataclass(frozen=True)
class Store:
    """The folder with a bare repository of our own, and the trees that are checked out of it."""

    folder: Path

    @property
    def repository(self) -> Path:
        return self.folder / REPOSITORY

    @property
    def trees(self) -> Path:
        return self.folder / TREES

    @property
    def objects(self) -> Path:
        return self.repository / "objects"

    def make(self, object_format: str = "sha1") -> None:
        """Create the repository, unless it exists."""
        if not (self.repository / "HEAD").exists():
            form = f"--object-format={object_format}"
            git(["init", "--quiet", "--bare", "--template=", form, str(self.repository)])
            self.git("config", "gc.auto", "0")

    def read_also(self, repositories: Iterable[Repository]) -> None:
        """From now on, find the objects of these repositories, too."""
        folders = dict.fromkeys(self._alternates())
        for repository in repositories:
            folders[str(repository.path("objects").resolve())] = None
            self.add_shallow(repository.path(_SHALLOW))
            self.git("config", "lfs.storage", str(repository.path("lfs").resolve()))
        present = [folder for folder in folders if Path(folder).is_dir()]
        write_below(self.objects, _ALTERNATES, os.fsencode("".join(f"{folder}\n" for folder in present)))

    def add_shallow(self, file: Path) -> None:
        """From now on, do without the parents of the commits in git's list `file`, if there is one."""
        if not file.is_file():
            return
        self._do_without_parents(read_regular(file).decode().splitlines())

    def _do_without_parents(self, commits: Sequence[str]) -> None:
        own_file = self.repository / _SHALLOW
        own_commits = read_regular(own_file).decode().splitlines() if own_file.is_file() else []
        lines = dict.fromkeys([*own_commits, *commits])
        write_below(self.repository, _SHALLOW, "".join(f"{line}\n" for line in lines).encode())

    def _alternates(self) -> list[str]:
        try:
            return os.fsdecode(read_regular(self.objects / _ALTERNATES)).splitlines()
        except FileNotFoundError:
            return []

    def git(self, *arguments: str, variables: Mapping[str, str] | None = None, data: bytes = b"") -> bytes:
        """Run git on the repository; raises as `git` does."""
        return git([f"--git-dir={self.repository}", *arguments], variables, data)

    def line(self, *arguments: str) -> str:
        """Return the only line that git prints; raises as `git` does."""
        return line([f"--git-dir={self.repository}", *arguments])

    def commit(self, tree: str, parent: str) -> str:
        """Commit a tree on top of `parent`, or without one; equal trees and parents give equal commits."""
        parents = ("-p", parent) if parent else ()
        return self.line("commit-tree", *parents, "-m", "Sealed by esper-ab", tree)

    def has_commit(self, commit: str) -> bool:
        """Whether the commit is here, or in a repository that is read, too."""
        try:
            self.git("cat-file", "-e", f"{commit}^{{commit}}")
        except GitFailed:
            return False
        return True

    def copy_objects(self, other: Store) -> None:
        """Copy the objects of another store."""
        copy_files(other.objects, other._own_objects(), self.objects)
        self.add_shallow(other.repository / _SHALLOW)

    def copy_whole(self, other: Store, sealed: str, commit: str) -> None:
        """Copy a sealed state of another store with all of its files, and the commit below it without its history."""
        commits = list(dict.fromkeys(filter(None, (sealed, commit))))
        objects = other.git("rev-list", "--objects", "--no-walk", "--no-object-names", *commits)
        self.git("unpack-objects", "-q", data=other.git("pack-objects", "--stdout", "-q", data=objects))
        if commit:
            self._do_without_parents([commit])

    def _own_objects(self) -> list[str]:
        """Return the paths of objects that are in no other repository."""
        files = (path for path in self.objects.rglob("*") if path.is_file() and path.parent.name != "info")
        return [path.relative_to(self.objects).as_posix() for path in files]

    def submodules(self, commit: str) -> dict[str, str]:
        """Return the commit of each submodule of a commit by its path."""
        commits = {}
        for entry in filter(None, self.git("ls-tree", "-r", "-z", commit).split(b"\0")):
            facts, _, path = entry.partition(b"\t")
            mode, _, submodule_commit = facts.split(b" ")
            if mode == _SUBMODULE:
                commits[os.fsdecode(path)] = submodule_commit.decode()
        return commits

    def check_out(self, commit: str, folder: Path) -> None:
        """Write the files of a commit to `folder`, which does not exist or is empty; raises as `git` does."""
        self.git("worktree", "add", "--quiet", "--force", "--detach", str(folder), commit)

    def remove_trees(self) -> None:
        """Remove all trees and what git remembers of them."""
        remove_folder_below(self.folder, TREES)
        if self.repository.is_dir():
            remove_folder_below(self.repository, "worktrees")

    def has_own_objects(self) -> bool:
        """Whether something here is in no other repository."""
        return bool(self._own_objects())
