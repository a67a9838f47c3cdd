"""How the numbers of a curve become a run's outcome: the last one, the mean of the last ones, or an extreme. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

SUMMARIES = "last, mean-last-K (as in mean-last-10), max or min"
_MEAN = re.compile(r"mean-last-([1-9][0-9]{0,8})")


class Summary(msgspec.Struct, frozen=True):
    """A summary of a curve's numbers."""

    of: Literal["last", "mean", "max", "min"] = "last"
    count: int = 1  # how many of the last numbers a mean takes
    declared: bool = False  # False: the user asked for none, and the last number counts

    @property
    def words(self) -> str:
        """Return the summary in words: "the mean of the last 10 values"."""
        if self.of == "mean":
            return f"the mean of the last {self.count} values"
        return {"last": "the last value", "max": "the largest value", "min": "the smallest value"}[self.of]

    def words_of(self, total: int) -> str:
        """Return the summary of `total` values in words: "the mean of the last 10 of 40 values"."""
        if self.of == "mean" and total < self.count:
            return f"the mean of all {total} values (fewer than {self.count})"
        if self.of == "mean":
            return f"the mean of the last {self.count} of {total} values"
        return {"last": "the last", "max": "the largest", "min": "the smallest"}[self.of] + f" of {total} values"


LAST = Summary()


def read_summary(text: str) -> Summary:
    """Parse a summary, where "" is the last number; for any other text, raises a ValueError with the valid forms."""
    if not text:
        return LAST
    if text == "last":
        return Summary("last", declared=True)
    if text == "max":
        return Summary("max", declared=True)
    if text == "min":
        return Summary("min", declared=True)
    mean = _MEAN.fullmatch(text)
    if not mean:
        raise ValueError(f"expected {SUMMARIES}, not {text!r}")
    return Summary("mean", int(mean[1]), declared=True)


def summarise(summary: Summary, total: int, number_at: Callable[[int], float]) -> tuple[float, int]:
    """Return the outcome of `total` numbers, at least one, and the place of the number that it is or ends with.

    `number_at` returns the number at a place; only those that the summary needs are read. A NaN among them is the
    outcome.
    """
    if summary.of == "last":
        return number_at(total - 1), total - 1
    if summary.of == "mean":
        values = [number_at(place) for place in range(max(0, total - summary.count), total)]
        return _mean(values), total - 1
    values = [number_at(place) for place in range(total)]
    broken = next((place for place, value in enumerate(values) if math.isnan(value)), None)
    if broken is not None:
        return math.nan, broken
    best_value = max(values) if summary.of == "max" else min(values)
    return best_value, values.index(best_value)


def _mean(values: Sequence[float]) -> float:
    try:
        return math.fsum(values) / len(values)
    except (ValueError, OverflowError):  # infinities of both signs, or a sum beyond the largest number
        return math.nan
