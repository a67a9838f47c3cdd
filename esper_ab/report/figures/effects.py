"""Figure of all comparisons on one axis: effect, interval, pairs, margin, zero, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from matplotlib.axes import Axes

from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import HALF, Drawing, difference, grid, name_rows
from esper_ab.report.figures.runs import outcome_label, token
from esper_ab.report.tables.table import NONE, span
from esper_ab.verdict.comparison import Comparison

_ROOM = 0.5  # for intervals on either side, as a share of the range that is always shown
_AIR = 0.04


def interval_rows(
    axes: Axes,
    rows: Sequence[tuple[float, tuple[float, float] | None]],
    margin: float,
    further_values: Sequence[float] = (),
) -> None:
    """Draw a row per estimate and interval, with zero and the margin.

    Wide intervals are cut off, because they would compress all other rows; an arrowhead marks where an interval
    continues. `further_values`: further values that the axis must show.
    """
    axes.axvspan(-margin, margin, color=style.BAND, linewidth=0)
    axes.axvline(0, color=style.INK, linewidth=1)
    needed_values = [-margin, margin, *further_values]
    ends: list[float] = []
    for estimate, interval in rows:
        needed_values.append(estimate)
        if interval:
            ends += interval
    lowest_value = min(needed_values)
    highest_value = max(needed_values)
    room = _ROOM * (highest_value - lowest_value)
    air = _AIR * (highest_value - lowest_value)
    left_end = max(min([lowest_value, *ends]), lowest_value - room) - air
    right_end = min(max([highest_value, *ends]), highest_value + room) + air
    axes.set_xlim(left_end, right_end)
    for row, (estimate, interval) in enumerate(rows):
        if interval:
            low, high = interval
            axes.plot(interval, [row, row], color=style.INK, linewidth=3, solid_capstyle="butt")
            if low < left_end:
                axes.plot([left_end], [row], marker=style.ARROW_LEFT, color=style.INK, markersize=9)
            if high > right_end:
                axes.plot([right_end], [row], marker=style.ARROW_RIGHT, color=style.INK, markersize=9)
        axes.plot([estimate], [row], "o", color=style.INK, markersize=7, markeredgecolor=style.CARD)


_MOST_MARKED = 90  # pairs; more would make the page too large


def effects(content: Content) -> Drawing | None:
    """Plot one row per comparison, in the design's order, below its name and verdict. None if there are no pairs."""
    estimated_items = [item for item in content.comparisons if item.estimate is not None]
    if not estimated_items:
        return None
    margin = content.design.margin
    figure, (axes,) = grid(1, single_size=(HALF, max(2.2, 0.95 + 0.85 * len(estimated_items))))
    for edge in (-margin, margin):
        axes.axvline(edge, color=style.MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    differences = [_differences(item) for item in estimated_items]
    interval_rows(axes, list(map(_row, estimated_items)), margin, list(chain.from_iterable(differences)))
    marks = sum(map(len, differences)) <= _MOST_MARKED
    look: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "clip_on": False}
    for row, item in enumerate(estimated_items):
        _ticks(axes, row, item, content.groups if marks else ())
        axes.text(0.0, row - 0.3, difference(item.question, 14), fontsize=9, **look)
        axes.text(1.0, row - 0.3, str(item.verdict), fontsize=8.5, fontweight="bold", ha="right", **look)
    name_rows(axes, [""] * len(estimated_items), top=-0.62, bottom=0.42)
    axes.set_xlabel(f"difference in {outcome_label(content.design, content.design.outcome.apart)}")
    title = "Effects"
    if len(estimated_items) == 1:
        title = "Effect"
    return Drawing(
        "effects",
        title,
        caption=f"Dot: effect. Line: its interval. Ticks: pairs. Shaded: within the margin of "
        f"{content.design.margin_words}. An arrowhead: the interval continues.",
        alt="; ".join(_words(item) for item in estimated_items) + ".",
        figure=figure,
        wide=False,
    )


def _row(item: Comparison) -> tuple[float, tuple[float, float] | None]:
    """Return the estimate, and the interval if there is one."""
    estimate = item.estimate or 0.0
    if item.low is None or item.high is None:
        return estimate, None
    return estimate, (item.low, item.high)


def _differences(item: Comparison) -> list[float]:
    return list(item.pairs[: item.used].differences.tolist())


def _ticks(axes: Axes, row: int, item: Comparison, groups: Sequence[str]) -> None:
    """Plot a tick for each difference; with `groups`, each tick is marked with its pair."""
    look: dict[str, Any] = {"color": style.MUTED, "markersize": 8, "markeredgewidth": 0.8}
    if not groups:
        differences = _differences(item)
        axes.plot(differences, [row] * len(differences), "|", **look)
        return
    a = groups.index(item.question.a)
    b = groups.index(item.question.b)
    for pair in item.pairs[: item.used]:
        tick = axes.plot([pair.a - pair.b], [row], "|", **look)
        style.mark(tick, token(pair.replicate, a, b))


def _words(item: Comparison) -> str:
    mean = item.design.difference(item.estimate) if item.estimate is not None else "none"
    limits = span(item.low, item.high, item.design.digits)
    interval = "no interval" if limits == NONE else f"{item.level} {limits}"
    return f"{item.question.a} minus {item.question.b}: {mean}, {interval}, {item.verdict}"
