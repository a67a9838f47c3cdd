"""A user's code that calls sys.exit() ends no process of ours: who catches what it raises catches that, too."""

from __future__ import annotations

import ast

from house.sources import ROOT, breaking, nodes


def _bare(source: str) -> list[int]:
    """Lines of handlers of Exception, which SystemExit is none of."""
    handlers = (node for node in nodes(source) if isinstance(node, ast.ExceptHandler) and node.type)
    return [node.lineno for node in handlers if ast.unparse(node.type) == "Exception"]


def test_workers_catch_user_faults_where_they_catch_everything() -> None:
    assert breaking(_bare, (ROOT / "workers").rglob("*.py")) == set()
