"""States of a user's code, one per group: a commit, or a folder as it was when the experiment was planned. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from esper_ab.contracts.records import CopyBelow, Count, FileBelow
from esper_ab.contracts.run_files import plain_group
from esper_ab.contracts.wording import counted

CODE_FOLDER = "code"  # in an experiment directory
TREES = "trees"  # folder in it with the files of each state
REPOSITORY = "repository"  # folder in it with the git objects of states that are no commits of the user's
_SHOWN_CHARS = 7  # of a commit's hash
_BEGINS_A_FOLDER = (".", "/", "~")


class StateOfCode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state of the code that the runs of a group are trained with."""

    group: str
    asked: str  # a commit, branch or tag as written, or the absolute path of a folder
    commit: str  # of the user's repository; "": a folder that is in none, or that has no commit yet
    sealed: str  # the commit whose files the runs get: `commit`, or one that adds uncommitted changes to it
    changed: Count = 0  # number of files that differ from `commit`
    changes_sha256: str = ""  # of the difference; "": there is none
    left_out: Count = 0  # files with uncommitted changes, if it is the commit that is checked out
    top: str  # folder of the repository or, outside any, the folder itself
    inside: str = ""  # the folder in which runs work, relative to `top`; "": `top`
    locks: dict[str, str] = {}  # sha256 of each lock file, by its path below `top`

    @property
    def words(self) -> str:
        """The state for users: "main (1a2b3c4)", "the working tree at 1a2b3c4 with 2 changed files"."""
        if not self.commit:
            return f"the folder {self.asked}"
        short = self.commit[:_SHOWN_CHARS]
        if self.changed:
            return f"the working tree at {short} with {counted(self.changed, 'changed file')}"
        if is_folder(self.asked):
            return f"the working tree at {short} without changes"
        if self.commit.startswith(self.asked):
            return f"commit {short}"
        return f"{self.asked} ({short})"

    @property
    def kept(self) -> bool:
        """Whether the state is no commit of the user's, so that the experiment directory has to keep it."""
        return self.sealed != self.commit


class CodeTree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a run finds the files of its state of the code."""

    folder: FileBelow  # relative to the experiment directory or, in a rehearsal, to the folder in its place
    inside: CopyBelow  # the folder in which the run works, relative to `folder`; "": `folder`
    top: str  # the user's own folder, of whose files `folder` has a state


def is_folder(state_text: str) -> bool:
    """Whether a state is written as a folder; everything else names a commit."""
    return state_text.startswith(_BEGINS_A_FOLDER)


def read_code(entries: Sequence[str]) -> dict[str, str]:
    """Return the state of each group, as written in NAME=STATE; ValueError, which says what is expected."""
    states: dict[str, str] = {}
    for entry in entries:
        name, equals_sign, state_text = entry.partition("=")
        if not (equals_sign and name.strip() and state_text.strip()):
            raise ValueError(f"expected NAME=COMMIT or NAME=FOLDER, as in base=main or head=., not {entry!r}")
        if name.strip() in states:
            raise ValueError(f"{name.strip()} is named twice")
        states[name.strip()] = state_text.strip()
    return states


def written_code(states: Mapping[str, str]) -> tuple[str, ...]:
    """Return states by group as entries that `read_code` reads."""
    return tuple(f"{name}={state_text}" for name, state_text in states.items())


def tree_of(state: StateOfCode) -> CodeTree:
    """Return where the files of a group's state are."""
    folder = f"{CODE_FOLDER}/{TREES}/{plain_group(state.group)}"
    return CodeTree(folder=folder, inside=state.inside, top=state.top)
