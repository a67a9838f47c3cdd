"""The files that rules of the house are about, and the calls in them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(path for folder in ("esper_ab", "workers") for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def every(files: list[Path]) -> pytest.MarkDecorator:
    """Parametrise a test by `path`."""
    return pytest.mark.parametrize("path", files, ids=name_of)


def calls(source: str) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
