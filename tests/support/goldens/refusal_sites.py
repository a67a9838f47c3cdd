"""Find every call in the code that creates a UsageError, and record which of these calls are reached.

A site is a call of `UsageError`, or of a function that returns one. Its name is the module, the function and a number
within the function; it has no line number, so that it stays the same when lines move.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from esper_ab.contracts.errors import UsageError

ROOT = Path(__file__).parents[3]
MAKERS = ("UsageError", "refused")  # the class, and the functions that return one
_PACKAGES = ("esper_ab", "workers")
_ERRORS = ROOT / "esper_ab/contracts/errors.py"  # which defines both


@dataclass(frozen=True)
class Site:
    """One call that makes a UsageError."""

    file: str  # from the root of the repository
    first: int  # line numbers
    last: int
    name: str  # "settings/flags.py _read_whole 1"


@cache
def sites() -> dict[str, list[Site]]:
    """Return all sites by the path of their file."""
    paths = (path for package in _PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return {str(path): list(_sites_in(path)) for path in paths if path != _ERRORS}


def _sites_in(path: Path) -> Iterator[Site]:
    file = str(path.relative_to(ROOT))
    numbers: dict[str, int] = {}
    for function, call in _calls(ast.parse(path.read_text()), ""):
        numbers[function] = numbers.get(function, 0) + 1
        name = f"{file.partition('/')[2]} {function or '(module)'} {numbers[function]}"
        yield Site(file, call.lineno, call.end_lineno or call.lineno, name)


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of MAKERS below `node` with their enclosing function, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name) and child.func.id in MAKERS:
            yield function, child
        has_name = isinstance(child, ast.FunctionDef | ast.ClassDef)
        yield from _calls(child, f"{function}.{child.name}".lstrip(".") if has_name else function)


@contextmanager
def reached() -> Iterator[set[Site]]:
    """Within this context, collect the sites in the code at which errors are created."""
    sites_reached: set[Site] = set()
    plain_init = UsageError.__init__

    def noted_init(self: UsageError, *parts: object) -> None:
        plain_init(self, *parts)  # type: ignore[arg-type]
        if (site := _site_above(sys._getframe(1))) is not None:
            sites_reached.add(site)

    UsageError.__init__ = noted_init  # type: ignore[method-assign]
    try:
        yield sites_reached
    finally:
        UsageError.__init__ = plain_init  # type: ignore[method-assign]


def _site_above(frame: FrameType | None) -> Site | None:
    """Return the innermost site that encloses the line of a calling frame."""
    while frame is not None:
        for site in sites().get(frame.f_code.co_filename, ()):
            if site.first <= frame.f_lineno <= site.last:
                return site
        frame = frame.f_back
    return None
