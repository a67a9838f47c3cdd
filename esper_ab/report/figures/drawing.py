"""A figure with title, caption and alternative text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esper_ab.contracts.visible import visible_line
from esper_ab.report.figures.style import INK, MUTED, colour, line, look, marker, svg
from esper_ab.verdict.question import Question

_WIDTH = 9.4  # inches, over the whole page
HALF = 4.6  # inches, beside another figure or on a phone


class Picture(Figure):
    """A figure that notebooks display without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with look():
            self.savefig(buffer, format="png", dpi=110, transparent=False)
        return buffer.getvalue()


@dataclass(frozen=True)
class Drawing:
    """A figure in the colours of `style`, with its texts, which are escaped by the page."""

    name: str
    title: str
    caption: str
    alt: str
    figure: Figure
    wide: bool = True
    tips: Mapping[str, str] = field(default_factory=dict)  # mark -> its tooltip

    @property
    def svg(self) -> str:
        """The figure as inline SVG markup for the page."""
        with look():
            return svg(self.figure, self.name, self.tips)


def shortened(name: str, most_chars: int = 28) -> str:
    """Cut a name longer than `most_chars` characters in the middle, to keep the plot's width; tables show the whole
    name.
    """
    name = visible_line(name)
    if len(name) <= most_chars:
        return name
    head = name[: most_chars // 2]
    tail = name[-(most_chars // 2 - 1) :]
    return f"{head}\u2026{tail}"


def difference(question: Question, most_chars: int) -> str:
    """Name a comparison, with at most `most_chars` characters of each group."""
    return f"{shortened(question.a, most_chars)} \u2212 {shortened(question.b, most_chars)}"


def grid(
    count: int, *, columns: int = 3, sharey: bool = False, single_size: tuple[float, float] = (HALF, 3.3)
) -> tuple[Figure, list[Axes]]:
    """Create a figure with exactly `count` panels, row by row; a figure with one panel has the size `single_size`."""
    columns = min(columns, count)
    rows = -(-count // columns)
    size = single_size if count == 1 else (_WIDTH, 0.7 + 2.0 * rows)
    figure = Picture(figsize=size)
    flat_axes: list[Axes] = list(figure.subplots(rows, columns, sharey=sharey, squeeze=False).flat)
    for axes in flat_axes[count:]:
        axes.remove()
    return figure, flat_axes[:count]


def label_axes(figure: Figure, x: str, y: str) -> None:
    """Label both axes of all panels together; pass "" for an axis that needs no label."""
    look: dict[str, Any] = {"fontsize": 9, "color": MUTED}
    if x:
        figure.supxlabel(x, **look)
    figure.supylabel(y, x=0.004, **look)


def name_rows(axes: Axes, names: Sequence[str], *, top: float, bottom: float) -> None:
    """Label the rows with `names`, from top to bottom, without an axis line.

    The y axis runs from `top`, at the top, to the number of rows minus `bottom`, at the bottom.
    """
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - bottom, top))
    axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=9)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def write_beside(axes: Axes, words: Sequence[str]) -> None:
    """Write a word to the right of each row."""
    right_axis = axes.secondary_yaxis("right")
    right_axis.set_yticks(range(len(words)), words, fontweight="bold")
    right_axis.tick_params(length=0, labelcolor=INK, labelsize=8.5)
    right_axis.spines["right"].set_visible(False)


def group_legend(figure: Figure, groups: list[tuple[int, str]], *, markers: bool) -> None:
    """Add a legend above the plot: group names with colour, and line or marker."""
    handles = []
    for index, name in groups:
        look: dict[str, Any] = {"linestyle": line(index)}
        if markers:
            look = {"linestyle": "none", "marker": marker(index)}
        handles.append(Line2D([], [], color=colour(index), label=shortened(name), **look))
    width = figure.get_size_inches()[0]
    longest_name = max(len(shortened(name)) for _, name in groups)
    fit = max(1, int(width * 12 / (longest_name + 8)))
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(fit, len(handles)),
        borderaxespad=0.2,
        handlelength=2.6,
        columnspacing=1.4,
    )
