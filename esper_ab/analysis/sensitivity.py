"""What a comparison says at several settings, side by side, and whether it says the same everywhere. Pure.

The points are separate experiments. Nothing is pooled, and no verdict is given over all of them.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

import msgspec

SCHEMA = 1
_WIDTH = 100
_DECIDED = ("BETTER", "WORSE", "EQUIVALENT", "IDENTICAL")


class PointComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison at one point; numbers in points, None where there are none."""

    a: str
    b: str
    verdict: str
    pairs: int
    mean: float | None
    low: float | None  # of the repeated confidence interval
    high: float | None


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: its experiment and what it said; `comparisons` is empty while it is to come."""

    setting: dict[str, str]  # key -> value as typed
    run: str  # folder below the parent
    digest: str  # of its plan
    comparisons: tuple[PointComparison, ...] = ()

    @property
    def title(self) -> str:
        return ", ".join(f"{key}={value}" for key, value in self.setting.items())


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a comparison says the same at all points; None while points are missing or none carries a verdict."""

    a: str
    b: str
    agrees: bool | None
    sentence: str


class Sensitivity(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `sensitivity.json`."""

    schema: int
    alpha: float  # of each point's experiment
    points: tuple[Point, ...]
    agreements: tuple[Agreement, ...]
    multiplicity: str


def summarise(points: Sequence[Point], alpha: float) -> Sensitivity:
    """Put `points`, in the order of the grid, finished or not, side by side; `alpha`: error rate of each experiment."""
    named = dict.fromkeys((one.a, one.b) for point in points for one in point.comparisons)
    return Sensitivity(
        schema=SCHEMA,
        alpha=alpha,
        points=tuple(points),
        agreements=tuple(_agreement(a, b, points) for a, b in named),
        multiplicity=multiplicity(len(points), alpha),
    )


def multiplicity(points: int, alpha: float) -> str:
    """A sentence on multiple testing over points: the union bound, because points share rng seeds."""
    return (
        f"Each of the {points} points is an experiment of its own with its own error rate of {alpha:.3g}. If nothing "
        f"differed anywhere, one of them or more would say BETTER or WORSE with a chance of up to "
        f"{min(1.0, points * alpha):.0%}. The table shows agreement; no verdict is given over all points."
    )


def _agreement(a: str, b: str, points: Sequence[Point]) -> Agreement:
    said = {point.title: one.verdict for point in points for one in point.comparisons if (one.a, one.b) == (a, b)}
    agrees, told = _told(said, len(points) - len(said))
    return Agreement(a=a, b=b, agrees=agrees, sentence=f"{a} - {b}: {told}")


def _told(said: dict[str, str], missing: int) -> tuple[bool | None, str]:
    words = {title: verdict.partition(",")[0] for title, verdict in said.items()}
    counts = Counter(words.values())
    listed = "; ".join(f"{word} at {_where(words, word)}" for word in counts)
    decided = [word for word in counts if word in _DECIDED]
    if len(decided) > 1:
        return False, f"does not agree: {listed}. The answer depends on the setting."
    if missing:
        return None, f"{missing} of {missing + len(said)} points are still to come; so far {listed}."
    if not decided:
        return None, f"no point carries a verdict ({listed}), so there is nothing to agree."
    if len(counts) > 1:
        return False, f"does not agree everywhere: {listed}. A point without a verdict shows nothing either way."
    return True, f"agrees: {decided[0]} at every one of the {len(said)} points."


def _where(words: dict[str, str], word: str) -> str:
    return " and ".join(title for title, said in words.items() if said == word)


def summary_text(found: Sensitivity) -> str:
    """A table of the points and sentences below it, as `summary.txt` keeps them."""
    head = ["setting", "comparison", "difference", "interval", "pairs", "verdict"]
    rows = [head]
    for point in found.points:
        rows += [
            [point.title, f"{one.a} - {one.b}", _signed(one.mean), _interval(one), str(one.pairs), one.verdict]
            for one in point.comparisons
        ] or [[point.title, "", "", "", "", "to come"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    told = [*(one.sentence for one in found.agreements), found.multiplicity]
    wrapped = [textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) for line in told]
    return "\n".join([*table, "", *wrapped])


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}"


def _interval(one: PointComparison) -> str:
    return "" if one.low is None or one.high is None else f"[{one.low:+.2f}, {one.high:+.2f}]"
