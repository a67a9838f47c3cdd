"""A figure with title, caption and alternative text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esper_ab.contracts.visible import visible_line
from esper_ab.design.design import Design
from esper_ab.report.content import Content
from esper_ab.report.figures import style

_WIDTH = 9.4  # inches, over the whole page
NARROW = 4.2  # inches, on a phone
_MOST_SINGLE = 200  # runs that a figure draws one by one: each is about a kilobyte of the page in all figures together


class Picture(Figure):
    """A figure that notebooks display without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with style.look():
            self.savefig(buffer, format="png", dpi=110, transparent=False)
        return buffer.getvalue()


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure in the marker colours of `style`, with its texts, which the page escapes."""

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    wide: bool = False
    narrow: Figure | None = None  # variant for a narrow screen, if the figure needs one
    tips: Mapping[str, str] = field(default_factory=dict)  # by mark: what it shows

    @cached_property
    def svg(self) -> str:
        """The figure as inline SVG markup for the page."""
        with style.look():
            return style.svg(self.figure, self.name, self.tips)

    @cached_property
    def narrow_svg(self) -> str:
        """The narrow figure as inline SVG markup; "" without one."""
        with style.look():
            return style.svg(self.narrow, f"{self.name}-narrow", self.tips) if self.narrow else ""


def of_group(group: int) -> str:
    """Return the mark of what stands for a whole group, by its place."""
    return f"{group}-"


def of_run(group: int, replicate: int) -> str:
    """Return the mark of one run."""
    return f"{group}-{replicate}"


def of_pair(a: int, b: int, replicate: int) -> str:
    """Return the mark of the two runs of a pair."""
    return f"{a}.{b}-{replicate}"


def drawn_singly(content: Content) -> frozenset[int]:
    """Return the replicates whose runs figures draw one by one: all, or of very many as many as a page can hold.

    Evenly spaced, so that no number decides which, and the same ones in every figure.
    """
    every = sorted({block.replicate for block in content.history.blocks})
    most = max(1, _MOST_SINGLE // len(content.groups))
    return frozenset(every if len(every) <= most else (every[place * len(every) // most] for place in range(most)))


def not_drawn(content: Content) -> str:
    """Return what a caption adds where not every run is drawn singly; "" where each is."""
    every, drawn = len({block.replicate for block in content.history.blocks}), len(drawn_singly(content))
    if drawn == every:
        return ""
    return f" Drawn one by one: {drawn} of {every} seeds, evenly spaced. All else is of every run."


def tips_of_runs(content: Content) -> dict[str, str]:
    """Return what to say of every run that has an outcome: group, replicate, outcome."""
    design = content.design
    return {
        of_run(place, run.run.replicate): f"{group}, seed {run.run.replicate}: {design.value(run.outcome)}"
        for place, group in enumerate(content.groups) for run in content.of_group(group) if run.outcome is not None
    }


def tips_of_pairs(content: Content) -> dict[str, str]:
    """Return what to say of every pair: its difference and its outcomes."""
    places, design = {group: place for place, group in enumerate(content.groups)}, content.design
    return {
        of_pair(places[item.question.a], places[item.question.b], pair.replicate):
        f"seed {pair.replicate}: {item.question.a} {design.value(pair.a)}, {item.question.b} "
        f"{design.value(pair.b)}, difference {design.difference(pair.a - pair.b)}"
        for item in content.comparisons for pair in item.pairs
    }  # fmt: skip


_OUTCOMES = {"evaluation": "", "last-tenth": " (last tenth of training)", "curve-mean": " (mean of training)"}


def outcome_label(design: Design, unit: str) -> str:
    """Return the axis label of the design's outcome or, by `unit`, of its difference."""
    lower = " (lower is better)" if design.outcome.sign < 0.0 else ""
    return f"{design.outcome.label}{_OUTCOMES[design.outcome_over]}{f', {unit}' if unit else ''}{lower}"


def shortened(name: str, most: int = 28) -> str:
    """Cut a name longer than `most` characters in the middle, to keep the plot's width; tables show it whole."""
    name = visible_line(name)
    return name if len(name) <= most else f"{name[: most // 2]}\u2026{name[-(most // 2 - 1) :]}"


def grid(
    count: int, *, columns: int = 3, sharey: bool = False, single: tuple[float, float] = (4.6, 3.3)
) -> tuple[Figure, list[Axes]]:
    """Create a figure with exactly `count` panels, row by row; a single panel has the size `single`."""
    if count == 1:
        figure = Picture(figsize=single)
        return figure, [figure.subplots()]
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Picture(figsize=(_WIDTH, 0.7 + 2.0 * rows))
    panels = figure.subplots(rows, columns, sharey=sharey, squeeze=False)
    flat: list[Axes] = list(panels.flat)
    for axes in flat[count:]:
        axes.remove()
    return figure, flat[:count]


def label_axes(figure: Figure, x: str, y: str) -> None:
    """Label both axes of all panels together; "" for one that needs no label."""
    look: dict[str, Any] = {"fontsize": 9, "color": style.MUTED}
    if x:
        figure.supxlabel(x, **look)
    figure.supylabel(y, x=0.004, **look)


def name_rows(axes: Axes, names: Sequence[str], *, above: float, below: float) -> None:
    """Name rows from top to bottom; the axis runs from `above` to the number of rows less `below`."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=style.INK, labelsize=9)
    axes.set_ylim(len(names) - below, above)


def bare_rows(axes: Axes) -> None:
    """Remove the grid lines of rows and the axis beside them."""
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def write_beside(axes: Axes, words: Sequence[str]) -> None:
    """Write a word to the right of each row."""
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(range(len(words)), words, fontweight="bold")
    beside.tick_params(length=0, labelcolor=style.INK, labelsize=8.5)
    beside.spines["right"].set_visible(False)


def group_legend(figure: Figure, groups: list[tuple[int, str]], *, markers: bool) -> None:
    """Add a legend above the plot: group names with colour, and line or marker."""
    handles = [
        Line2D(
            [], [], color=style.colour(index), linestyle="none" if markers else style.line(index),
            marker=style.marker(index) if markers else "", label=shortened(name),
        )
        for index, name in groups
    ]
    width = figure.get_size_inches()[0]
    longest = max(len(shortened(name)) for _, name in groups)
    fit = max(1, int(width * 12 / (longest + 8)))
    figure.legend(
        handles=handles, loc="outside upper left", ncols=min(fit, len(handles)), borderaxespad=0.2, handlelength=2.6,
        columnspacing=1.4,
    )
