"""A user's code that calls sys.exit() ends no process of ours: who catches what it raises catches that, too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "workers").rglob("*.py"))


def _bare(source: str) -> list[int]:
    """Lines of handlers of Exception, which SystemExit is none of."""
    handlers = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler) and node.type)
    return [node.lineno for node in handlers if ast.unparse(node.type) == "Exception"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_workers_catch_user_faults_where_they_catch_everything(file: Path) -> None:
    assert _bare(file.read_text(encoding="utf-8")) == []


def test_a_bare_handler_would_be_found() -> None:
    assert _bare("try:\n    f()\nexcept Exception as error:\n    pass") == [3]
    assert _bare("try:\n    f()\nexcept USER_FAULTS as error:\n    pass") == []
