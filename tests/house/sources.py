"""The source files that house rules check, and the calls in them."""

import ast
import functools
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("esper_ab", "workers")
SOURCES = sorted(path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def breaking(rule: Callable[[str], object], files: Iterable[Path] = SOURCES) -> set[str]:
    """Return the names of the files in which `rule` finds a violation."""
    return {name_of(path) for path in files if rule(path.read_text(encoding="utf-8"))}


@functools.cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(source)))


def calls(source: str) -> list[ast.Call]:
    return [node for node in nodes(source) if isinstance(node, ast.Call)]
