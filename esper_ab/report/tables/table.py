"""A table of finished text: formatted once, laid out three times (terminal, HTML, Markdown)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

from esper_ab.journal.outcomes import mean
from esper_ab.stats import text
from esper_ab.stats.floats import exact_sum, floats

NONE = "n/a"
NOT_COMPARABLE = "not comparable between modes"


@dataclass(frozen=True)
class Table:
    """Rows of finished text. The first `words` columns hold text; the others hold numbers, aligned right."""

    title: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    note: str = ""  # below rows
    none: str = ""  # shown if there are no rows; if also "", there is nothing to show
    words: int = 1
    wide: bool = True  # needs the whole width of a page

    def __bool__(self) -> bool:
        """Return whether there is anything to show."""
        return bool(self.rows or self.none)

    @property
    def text_below(self) -> str:
        """The text below the title or the rows."""
        return self.note if self.rows else self.none


def number(value: float | None, digits: int = 2) -> str:
    """Format a plain decimal; None becomes "n/a"."""
    return NONE if value is None else f"{value:,.{digits}f}"


def signed(value: float | None, digits: int = 2) -> str:
    """Format a difference, as in "+1.20"; None becomes "n/a"."""
    return NONE if value is None else text.signed(value, digits)


def span(low: float | None, high: float | None, digits: int = 2) -> str:
    """Format an interval, as in "+0.40 to +3.20"; "n/a" if an end is None."""
    if low is None or high is None:
        return NONE
    return f"{text.signed(low, digits)} to {text.signed(high, digits)}"


def percent(share: float | None) -> float | None:
    """Return a share in percent; None if the share is None."""
    return None if share is None else 100 * share


def mean_and_sd(values: Iterable[float | None], digits: int = 2) -> str:
    """Format the mean over runs and, from two runs on, the standard deviation, as in "70.12 (1.30)".

    Runs without a value are named, as in "70.12 (1.30), 18 of 20 runs".
    """
    all_values = list(values)
    present_values = [value for value in all_values if value is not None]
    middle = mean(present_values)
    if middle is None:
        return NONE
    words = number(middle, digits)
    if len(present_values) > 1:
        squares = exact_sum((floats(present_values) - middle) ** 2)
        words += f" ({number(sqrt(squares / (len(present_values) - 1)), digits)})"
    if len(present_values) < len(all_values):
        words += f", {len(present_values)} of {len(all_values)} runs"
    return words
