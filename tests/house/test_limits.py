"""The packages grow only when a commit says why: limits.toml, and how it came to be what it is."""

from __future__ import annotations

import ast
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from house import limits

LEAST_DOCUMENTED_PERCENT = 70
FILE = str(limits.FILE.relative_to(limits.ROOT))


def test_no_room_and_no_language_is_larger_than_its_limit() -> None:
    assert limits.above(limits.present(limits.ROOT), tomllib.loads(limits.FILE.read_text(encoding="utf-8"))) == []


def skip_without_history() -> None:
    if shutil.which("git") is None or not (limits.ROOT / ".git").exists():
        pytest.skip("no git history here")
    if git(limits.ROOT, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("a shallow clone has no history")


def test_no_commit_raises_a_limit_without_its_reason() -> None:
    skip_without_history()
    assert limits.unexplained(limits.ROOT, FILE) == []


def test_most_functions_have_a_docstring() -> None:
    assert limits.documented_percent([tree for _, tree in limits.parsed(limits.ROOT)]) >= LEAST_DOCUMENTED_PERCENT


def test_statements_are_counted_without_imports_docstrings_and_layout() -> None:
    text = '"""Says."""\nimport os\nx = 1; y = 2\ndef f():\n    """Says."""\n    if x: return y\nclass C:\n    "It"\n'
    assert limits.statements(ast.parse(text)) == 6


def git(folder: Path, *arguments: str) -> str:
    alone = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": "/usr/bin:/bin:/usr/local/bin"}
    named = ("-c", "user.name=n", "-c", "user.email=n@example.org")
    done = subprocess.run(
        ("git", *named, *arguments), cwd=folder, capture_output=True, text=True, check=True, env=alone
    )
    return done.stdout.strip()


class Repository:
    """A repository with nothing but limits."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        git(folder, "init", "--quiet", "--initial-branch", "main")

    def commit(self, message: str, **rooms: int) -> None:
        (self.folder / "limits.toml").write_text(limits.toml({"statements": rooms}))
        git(self.folder, "add", "limits.toml")
        git(self.folder, "commit", "--quiet", "--message", message)

    def unexplained(self) -> list[str]:
        return [line.partition(": ")[2] for line in limits.unexplained(self.folder, "limits.toml")]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    if shutil.which("git") is None:
        pytest.skip("no git")
    return Repository(tmp_path)


def test_a_raise_is_found_unless_its_commit_says_why(repository: Repository) -> None:
    repository.commit("begin", all=30, a=10, b=20)
    repository.commit("less", all=25, a=9, b=16)
    assert repository.unexplained() == []
    repository.commit("Room-limit: a needs a parser", all=26, a=10, b=16)
    repository.commit("split", all=26, a=6, c=4, b=16)
    assert repository.unexplained() == []
    repository.commit("more\n\nRoom-limit:", all=26, a=7, c=3, b=16)
    assert repository.unexplained() == ["a: 7 statements, at most 6"]


def test_a_merge_takes_what_a_side_lowered_and_raises_nothing(repository: Repository) -> None:
    repository.commit("begin", all=30, a=10, b=20)
    git(repository.folder, "checkout", "--quiet", "-b", "side")
    (repository.folder / "other").write_text("text")
    git(repository.folder, "add", "other")
    git(repository.folder, "commit", "--quiet", "--message", "other")
    git(repository.folder, "checkout", "--quiet", "main")
    repository.commit("less", all=25, a=5, b=20)
    git(repository.folder, "merge", "--quiet", "--no-commit", "side")
    repository.commit("merge", all=25, a=5, b=20)
    assert repository.unexplained() == []
    git(repository.folder, "reset", "--quiet", "--hard", "HEAD^1")
    git(repository.folder, "merge", "--quiet", "--no-commit", "side")
    repository.commit("merge, and back to what it was", all=30, a=10, b=20)
    assert repository.unexplained() == ["all: 30 statements, at most 25; a: 10 statements, at most 5"]
