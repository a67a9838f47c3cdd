"""A user's git repository in a folder of a test."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_AUTHOR = ("-c", "user.name=user", "-c", "user.email=user@localhost", "-c", "protocol.file.allow=always")


@dataclass(frozen=True)
class UsersRepository:
    """A repository, whose files a test writes and commits."""

    top: Path

    def git(self, *arguments: str) -> str:
        """Run git and return what it prints."""
        words = ["git", "-C", str(self.top), *_AUTHOR, *arguments]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    def write(self, files: Mapping[str, str]) -> None:
        """Write files by their paths below the top."""
        for name, text in files.items():
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def commit(self, files: Mapping[str, str], tag: str = "") -> str:
        """Write files, commit everything, and return the commit."""
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "a state")
        if tag:
            self.git("tag", tag)
        return self.git("rev-parse", "HEAD").strip()


def users_repository(folder: Path) -> UsersRepository:
    """Make an empty repository in a new folder."""
    folder.mkdir(parents=True)
    repository = UsersRepository(folder)
    repository.git("init", "--quiet", "--initial-branch", "main")
    return repository
