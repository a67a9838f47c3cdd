"""Looking up by name, where a name that is not there is answered with those that are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from esper_ab.contracts.errors import UsageError
from esper_ab.verdict.comparison import Comparison

Found = TypeVar("Found")


class NoSuchName(UsageError, KeyError):
    """A name that is not there, of a variant or of a comparison."""


class ByPair(dict[tuple[str, str], Found]):
    """(a, b) -> what is known of a - b. Another pair is an error that says which there are."""

    def __missing__(self, pair: object) -> Found:
        listed = ", ".join(f"{a} - {b}" for a, b in self) or "none"
        match pair:
            case (str(a), str(b)) if (b, a) in self:
                raise NoSuchName(f"no comparison {a} - {b}; there is {b} - {a}, with the signs reversed")
            case (str(a), str(b)):
                raise NoSuchName(f"no comparison {a} - {b}; there is {listed}")
        raise NoSuchName(f"{pair!r} is not a pair of groups, as in verdicts[a, b]; there is {listed}")


def verdicts_of(comparisons: Iterable[Comparison]) -> dict[tuple[str, str], str]:
    """Return (a, b) -> the verdict on a - b."""
    return ByPair({(one.question.a, one.question.b): str(one.verdict) for one in comparisons})
