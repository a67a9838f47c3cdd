"""Runs git, of which users' settings and hooks change nothing here, and says where a repository keeps its objects."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import SettingName, UsageError

# What git calls an empty value of core.hooksPath is the repository's own folder, so hooks are looked for nowhere.
_QUIETLY = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
_SHOWN_CHARS = 300  # of git's complaint
# Who commits, and when, so that equal files give equal commits.
_AUTHOR = {
    f"GIT_{role}_{fact}": text
    for role in ("AUTHOR", "COMMITTER")
    for fact, text in (("NAME", "esper-ab"), ("EMAIL", "esper-ab@localhost"), ("DATE", "2000-01-01T00:00:00+0000"))
}


class GitFailed(UsageError):
    """Git ended with an error; the message is its complaint in one line."""


def git(arguments: Sequence[str], variables: Mapping[str, str] | None = None, data: bytes = b"") -> bytes:
    """Run git and return what it prints; GitFailed with its complaint, and UsageError where there is no git."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own_variables = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", **_AUTHOR}
    try:
        process = subprocess.run(
            ["git", *_QUIETLY, *arguments],
            env={**inherited, **own_variables, **(variables or {})},
            input=data,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        problem = " needs git, which is not installed or not on PATH; install it"
        raise UsageError(SettingName("code"), problem) from None
    if process.returncode:
        complaint = " ".join(process.stderr.decode(errors="replace").split())
        complaint = complaint.removeprefix("fatal: ")[:_SHOWN_CHARS]
        raise GitFailed(f"git: {complaint or f'ended with status {process.returncode}'}")
    return process.stdout


def line(arguments: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Run git and return the only line that it prints; raises as `git` does."""
    return os.fsdecode(git(arguments, variables)).rstrip("\n")


@dataclass(frozen=True)
class Repository:
    """A repository of the user's, which is only read."""

    top: Path  # folder of its working tree

    def git(self, *arguments: str, variables: Mapping[str, str] | None = None, data: bytes = b"") -> bytes:
        """Run git in the working tree; raises as `git` does."""
        return git(["-C", str(self.top), *arguments], variables, data)

    def line(self, *arguments: str) -> str:
        """Return the only line that git prints; raises as `git` does."""
        return line(["-C", str(self.top), *arguments])

    def path(self, name: str) -> Path:
        """Return the absolute path of one of git's own files or folders."""
        return self.top / self.line("rev-parse", "--git-path", name)

    def commit_of(self, name: str) -> str:
        """Return the hash of the commit that a branch, tag or hash names; "" if none has that name."""
        try:
            return self.line("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
        except GitFailed:
            return ""


def repository_at(folder: Path) -> Repository | None:
    """Return the repository whose working tree has `folder`; None if there is none."""
    try:
        return Repository(Path(line(["-C", str(folder), "rev-parse", "--show-toplevel"])))
    except GitFailed:
        return None
