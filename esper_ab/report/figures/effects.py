"""Figure of all comparisons on one axis: effect, repeated interval, plain interval, margin, zero, verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.style import (
    NARROW,
    Drawing,
    Picture,
    bare_rows,
    name_rows,
    of_pair,
    outcome_label,
    shortened,
    tips_of_pairs,
    write_beside,
)
from esper_ab.report.tables.table import NONE, span
from esper_ab.verdict.comparison import Comparison

# --- intervals -------------------------------------------------------------------------------------------------------
# Rows of estimates with intervals on one axis: where the axis ends, and what of an interval lies beyond it.


_ROOM = 0.5  # for intervals on either side, as a share of the range that is always shown
_AIR = 0.04


def axis_limits(seen: Iterable[float], ends: Iterable[float]) -> tuple[float, float]:
    """Return limits with all of `seen` and, of the intervals' `ends`, what fits: a wide one would hide the rest."""
    shown = list(seen)
    whole = [*shown, *ends]
    room, air = (share * (max(shown) - min(shown)) for share in (_ROOM, _AIR))
    return max(min(whole), min(shown) - room) - air, min(max(whole), max(shown) + room) + air


def interval_bar(axes: Axes, row: int, interval: tuple[float, float], limits: tuple[float, float]) -> None:
    """Draw an interval as a thick line, with an arrowhead where it continues beyond the axis."""
    low, high = interval
    axes.plot([low, high], [row, row], color=style.INK, linewidth=3, solid_capstyle="butt")
    for edge, beyond, arrow in (
        (limits[0], low < limits[0], style.ARROW_LEFT), (limits[1], high > limits[1], style.ARROW_RIGHT),
    ):  # fmt: skip
        if beyond:
            axes.plot([edge], [row], marker=arrow, color=style.INK, markersize=9)


_MOST_MARKED = 90  # pairs; more would make the page too large
_LOWER = 0.26  # offset of the plain interval below the repeated one, in rows


def effects(content: Content) -> Drawing | None:
    """Plot one row per comparison, in the order of the design. None without a pair."""
    shown = [item for item in content.comparisons if item.estimate is not None]
    if not shown:
        return None
    margin = content.design.margin_words
    return Drawing(
        name="effects", title="Effects, with their intervals",
        caption="Dot: effect, adjusted for device and order where the plan does so. Thick: repeated interval, valid "
        "over all interim looks (before the first look an uncorrected one). Thin, below: the plain t interval of "
        "a single look. Arrowhead: continues beyond the figure. "
        f"Ticks: the pairs used. Shaded between broken lines: within the margin of {margin}.",
        alt="; ".join(_words(item) for item in shown) + ".", figure=_figure(content, shown),
        narrow=_narrow(content, shown), wide=True, tips=tips_of_pairs(content),
    )


def _figure(content: Content, shown: Sequence[Comparison]) -> Figure:
    figure = Picture(figsize=(9.4, 0.95 + 0.62 * len(shown)))
    axes = _all_rows(figure, content, shown)
    names = [f"{shortened(item.question.a, 20)} \u2212 {shortened(item.question.b, 20)}" for item in shown]
    name_rows(axes, names, above=-0.5, below=0.42)
    write_beside(axes, [str(item.verdict) for item in shown])
    return figure


def _narrow(content: Content, shown: Sequence[Comparison]) -> Figure:
    """Plot for a narrow screen, with the labels above each row, so that the axis has the whole width."""
    figure = Picture(figsize=(NARROW, 0.95 + 0.85 * len(shown)))
    axes = _all_rows(figure, content, shown)
    for row, item in enumerate(shown):
        name = f"{shortened(item.question.a, 14)} \u2212 {shortened(item.question.b, 14)}"
        look: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "clip_on": False}
        axes.text(0.0, row - 0.3, name, fontsize=9, **look)
        axes.text(1.0, row - 0.3, str(item.verdict), fontsize=8.5, fontweight="bold", ha="right", **look)
    axes.set_yticks(())
    axes.set_ylim(len(shown) - 0.42, -0.62)
    return figure


def _all_rows(figure: Figure, content: Content, shown: Sequence[Comparison]) -> Axes:
    """Plot everything except the row labels."""
    margin = content.design.margin
    axes = figure.subplots()
    axes.axvspan(-margin, margin, color=style.BAND, linewidth=0)
    for edge in (-margin, margin):
        axes.axvline(edge, color=style.MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.axvline(0, color=style.INK, linewidth=1)
    limits = _limits(shown, margin)
    axes.set_xlim(*limits)
    for row, item in enumerate(shown):
        _row(axes, row, item, limits)
        _ticks(axes, row, item, content.groups if sum(one.used for one in shown) <= _MOST_MARKED else ())
    bare_rows(axes)
    axes.set_xlabel(f"difference in {outcome_label(content.design, content.design.outcome.apart)}")
    return axes


def _limits(shown: Sequence[Comparison], margin: float) -> tuple[float, float]:
    """Return the axis limits: margin, estimates and differences, and what fits of the intervals."""
    seen = [-margin, margin, *(item.estimate for item in shown if item.estimate is not None)]
    seen += [pair.a - pair.b for item in shown for pair in item.pairs[: item.used]]
    return axis_limits(seen, [end for item in shown for end in (item.low, item.high) if end is not None])


def _ticks(axes: Axes, row: int, item: Comparison, groups: Sequence[str]) -> None:
    """Plot a tick for each difference; with `groups` each is a mark of its pair."""
    look: dict[str, Any] = {"color": style.MUTED, "markersize": 8, "markeredgewidth": 0.8}
    pairs = item.pairs[: item.used]
    if not groups:
        axes.plot([pair.a - pair.b for pair in pairs], [row] * len(pairs), "|", **look)
        return
    a, b = groups.index(item.question.a), groups.index(item.question.b)
    for pair in pairs:
        style.mark(axes.plot([pair.a - pair.b], [row], "|", **look), of_pair(a, b, pair.replicate))


def _row(axes: Axes, row: int, item: Comparison, limits: tuple[float, float]) -> None:
    if item.low is not None and item.high is not None:
        interval_bar(axes, row, (item.low, item.high), limits)
    if item.plain is not None and item.plain.low is not None and item.plain.high is not None:
        below = row + _LOWER
        axes.plot([item.plain.low, item.plain.high], [below, below], color=style.MUTED, linewidth=1.2)
        axes.plot([item.plain.mean], [below], "|", color=style.MUTED, markersize=5)
    if item.estimate is not None:
        axes.plot([item.estimate], [row], "o", color=style.INK, markersize=7, markeredgecolor=style.CARD)


def _words(item: Comparison) -> str:
    mean = item.design.difference(item.estimate) if item.estimate is not None else "none"
    limits = span(item.low, item.high, item.design.digits)
    interval = "no interval" if limits == NONE else f"{item.level} {limits}"
    return f"{item.question.a} minus {item.question.b}: {mean}, {interval}, {item.verdict}"
