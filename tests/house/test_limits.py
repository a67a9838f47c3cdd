"""The packages grow only when a commit says why: limits.toml, and how it came to be what it is."""

import shutil
import tomllib

import pytest
from house import limits

LEAST_DOCUMENTED_PERCENT = 70
FILE = str(limits.FILE.relative_to(limits.ROOT))


def test_no_room_and_no_language_is_larger_than_its_limit():
    assert limits.above(limits.present(limits.ROOT), tomllib.loads(limits.FILE.read_text(encoding="utf-8"))) == []


def skip_without_history() -> None:
    if shutil.which("git") is None or not (limits.ROOT / ".git").exists():
        pytest.skip("no git history here")
    if (limits.ROOT / ".git" / "shallow").exists():
        pytest.skip("a shallow clone has no history")


def test_no_commit_raises_a_limit_without_its_reason():
    skip_without_history()
    assert limits.unexplained(limits.ROOT, FILE) == []


def test_most_functions_have_a_docstring():
    assert limits.documented_percent([tree for _, tree in limits.parsed(limits.ROOT)]) >= LEAST_DOCUMENTED_PERCENT
