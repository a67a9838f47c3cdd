"""A figure as the page takes it: SVG, title, caption, and the same in words for who cannot see it."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esper_ab.report import style


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """`svg` is markup of our own making; everything else is text and gets escaped."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    wide: bool = False


def group_legend(figure: Figure, groups: list[tuple[int, str]], *, markers: bool) -> None:
    """Names with colour, and line or marker, above the plot."""
    handles = [
        Line2D(
            [],
            [],
            color=style.colour(index),
            linestyle="none" if markers else style.line(index),
            marker=style.marker(index) if markers else "",
            label=name,
        )
        for index, name in groups
    ]
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(4, len(handles)),
        borderaxespad=0.2,
        handlelength=2.6,
        columnspacing=1.4,
    )
