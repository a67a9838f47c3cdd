"""Tables and numbers of a page."""

from collections.abc import Iterable
from typing import Any


def table(header: str, rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a table; `header`: the names of its columns, between bars."""
    names = header.split(" | ")
    return ["| " + " | ".join(map(str, line)) + " |" for line in (names, ["---"] * len(names), *rows)]


def ranged(spread: dict[str, float], digits: int = 2) -> str:
    """Return a median with its quartiles."""
    return f"{spread['median']:.{digits}f} [{spread['low']:.{digits}f}, {spread['high']:.{digits}f}]"


def hosts_of(case: dict[str, Any]) -> str:
    """Return what a case's hosts are called: by the shape of their images if these were generated."""
    return "32x32x3" if case["task"] == "cifar10" else str(case["task"])
