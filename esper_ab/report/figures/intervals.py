"""Rows of estimates with intervals on one axis: where the axis ends, and what of an interval lies beyond it."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes

from esper_ab.report.figures import style

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
