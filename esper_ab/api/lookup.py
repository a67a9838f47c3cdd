"""Lookups by name; an error lists the names that exist."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from esper_ab.contracts.errors import UsageError
from esper_ab.verdict.comparison import Comparison

Found = TypeVar("Found")


class NoSuchName(UsageError, KeyError):
    """An unknown variant or comparison."""


class ByPair(dict[tuple[str, str], Found]):
    """A mapping from (a, b) to a value for a - b.

    An unknown pair raises NoSuchName, which lists the pairs that exist.
    """

    def __missing__(self, pair: object) -> Found:
        pair_words = ", ".join(f"{a} - {b}" for a, b in self) or "none"
        match pair:
            case (str(a), str(b)) if (b, a) in self:
                raise NoSuchName(f"no comparison {a} - {b}; use {b} - {a}, with the signs reversed")
            case (str(a), str(b)):
                raise NoSuchName(f"no comparison {a} - {b}; comparisons: {pair_words}")
        raise NoSuchName(f"{pair!r} is not a pair of groups, as in verdicts[a, b]; comparisons: {pair_words}")


def verdicts_of(comparisons: Iterable[Comparison]) -> dict[tuple[str, str], str]:
    """Return a mapping from (a, b) to the verdict on a - b; an unknown pair raises NoSuchName."""
    return ByPair(
        {(comparison.question.a, comparison.question.b): str(comparison.verdict) for comparison in comparisons}
    )
