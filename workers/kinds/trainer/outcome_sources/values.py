"""The numbers that a source has, in the order in which a run wrote them, and the outcome that they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from esper_ab.contracts.errors import SettingName
from esper_ab.contracts.marked_settings import in_every_door
from esper_ab.contracts.outcome_summary import Summary, summarise
from workers.kinds.trainer.outcome_sources.left import Found


@dataclass(frozen=True)
class Values:
    """The numbers of a source, at least one. A number is read when it is needed."""

    total: int
    at: Callable[[int], float]  # the number at a place, need not be finite; ValueError if it is no number
    where: Callable[[int], str]  # the place in words: "log.csv, score, row 7"
    source: str  # as `contracts.trainer.read_source` reads it, without a search
    single: bool = False  # the source can only have one number
    needs_summary: bool = False  # whether nothing says that the last number counts

    def named(self, source: str) -> Values:
        """Return the same numbers, to be found again by another source."""
        return replace(self, source=source)

    def outcome(self, summary: Summary) -> Found:
        """Return the outcome; ValueError if these numbers do not fit the summary."""
        if self.single and summary.of != "last":
            raise ValueError(
                f"{self.where(0)} is one number, so there is nothing to summarise; omit "
                f"{in_every_door(SettingName('outcome_summary'))}"
            )
        if self.needs_summary and not summary.declared:
            raise ValueError(
                f"{self.where(0)[: -len(' [0]')]} is a list of {self.total}; say how it becomes the outcome (last, "
                f"mean-last-10, max or min), as in {in_every_door(SettingName('outcome_summary', 'last'))}"
            )
        value, place = summarise(summary, self.total, self.at)
        words = summary.words_of(self.total) if self.total > 1 else ""
        preposition: Literal["in", "up to"] = "up to" if summary.of == "mean" and self.total > 1 else "in"
        return Found(value, self.where(place), self.source, self.total, words, preposition)


def joined(parts: Sequence[Values]) -> Values:
    """Return the numbers of several parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    ends = list(accumulate(part.total for part in parts))

    def of(place: int) -> tuple[Values, int]:
        number = next(index for index, end in enumerate(ends) if place < end)
        return parts[number], place - (ends[number] - parts[number].total)

    def at(place: int) -> float:
        part, own_place = of(place)
        return part.at(own_place)

    def where(place: int) -> str:
        part, own_place = of(place)
        return part.where(own_place)

    return Values(ends[-1], at, where, parts[-1].source)
