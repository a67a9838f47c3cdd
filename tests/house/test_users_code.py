"""A user's code that calls sys.exit() ends no process of ours: who catches what it raises catches that, too."""

from __future__ import annotations

import ast
from pathlib import Path

from house.sources import ROOT, every


def _bare(source: str) -> list[int]:
    """Lines of handlers of Exception, which SystemExit is none of."""
    handlers = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ExceptHandler) and node.type)
    return [node.lineno for node in handlers if ast.unparse(node.type) == "Exception"]


@every(sorted((ROOT / "workers").rglob("*.py")))
def test_workers_catch_user_faults_where_they_catch_everything(path: Path) -> None:
    assert _bare(path.read_text(encoding="utf-8")) == []
