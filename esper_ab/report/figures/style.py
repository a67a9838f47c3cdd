"""Common style of all figures, and a figure with title, caption and alternative text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import matplotlib as mpl
from markupsafe import escape
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esper_ab.contracts.wording import visible_line
from esper_ab.design.design import Design
from esper_ab.report.content import Content
from esper_ab.verdict.pairing import Question

# --- style -----------------------------------------------------------------------------------------------------------
# Common style of all figures.
#
# Figures are drawn in the page's colours for light mode. In the page each of them becomes a CSS variable, so that one
# SVG serves light and dark mode. Groups differ in colour, line and marker: every figure is readable without colour.


INK, MUTED, GRID, BAND, CARD = "#1c1d20", "#5d6068", "#dcdcd6", "#efeee6", "#ffffff"
# Colours of groups; further groups repeat them with the next line style and marker.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0548a", "#b07d00", "#3b8fc2")
MOST_COLOURS = len(_COLOURS)
# Shades of a seed's life, from faint to strong; they differ in lightness alone.
STAGES = ("#e8ebee", "#c9d6e0", "#9db9cd", "#6a95b3", "#3a6c90", "#173d5c")
VARIABLES = {  # colour -> its name in report.css
    INK: "--ink", MUTED: "--muted", GRID: "--grid", BAND: "--band", CARD: "--card",
    **{colour: f"--group-{i}" for i, colour in enumerate(_COLOURS)},
    **{colour: f"--stage-{i}" for i, colour in enumerate(STAGES)},
}  # fmt: skip
_PAD, _LINE = 6.0, 14.0  # points: the edge; a line of labels with its spacing
_TENTHS = re.compile(r"(\d\.\d)\d+")  # coordinates in points (1/72 inch), rounded to tenths
ARROW_LEFT, ARROW_RIGHT = 4, 5  # matplotlib's markers whose tip is the point
_MARK = "mark:"
_MARKED = re.compile(rf'<g id="{_MARK}([0-9.-]+)">')
_LINES = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)), (0, (3, 1)), (0, (1, 3)))
_MARKERS = "osD^vP"
_RC: Any = {  # matplotlib types its keys one by one
    "axes.axisbelow": True, "axes.edgecolor": GRID, "axes.grid": True,
    "axes.labelcolor": MUTED, "axes.labelsize": 9, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlecolor": INK, "axes.titlelocation": "left", "axes.titlesize": 9.5,
    "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"],
    "grid.color": GRID, "grid.linewidth": 0.6, "lines.linewidth": 1.8,
    "legend.fontsize": 9, "legend.frameon": False, "legend.labelcolor": INK,
    "savefig.transparent": True, "svg.fonttype": "none", "svg.hashsalt": "esper_ab",
    "text.color": INK, "text.parse_math": False,
    "xtick.color": GRID, "xtick.labelcolor": MUTED, "xtick.labelsize": 8.5,
    "ytick.color": GRID, "ytick.labelcolor": MUTED, "ytick.labelsize": 8.5,
}


def colour(index: int) -> str:
    """Return the colour of group `index`."""
    return _COLOURS[index % MOST_COLOURS]


def line(index: int) -> Any:
    """Return the matplotlib line style of group `index`."""
    return _LINES[(index + index // MOST_COLOURS) % len(_LINES)]


def marker(index: int) -> str:
    """Return the marker of group `index`."""
    return _MARKERS[(index + index // MOST_COLOURS) % len(_MARKERS)]


@contextmanager
def look() -> Iterator[None]:
    """Apply the common style inside the context, whatever the user's matplotlibrc contains; restore it afterwards."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def arrange(figure: Figure) -> None:
    """Leave room around the panels of a figure for its labels and its legend; `svg` calls this as well.

    The room is estimated from the number of letters, because the page's font differs from matplotlib's, and because
    matplotlib's own layouts arrange everything two or three times.
    """
    width, height = (72.0 * float(inches) for inches in figure.get_size_inches())  # lengths here are in points
    lefts = [_LINE * bool(one.get_ylabel()) + one.yaxis.get_tick_params()["labelleft"] * _widest(one.yaxis, 5.4)
             for one in figure.axes]  # fmt: skip
    above = _LINE * any(one.get_title("left") or one.yaxis.get_major_formatter().get_offset() for one in figure.axes)
    below = _LINE * (1 + any(one.get_xlabel() for one in figure.axes))
    right = max((_widest(beside.yaxis, 6.6) for one in figure.axes for beside in one.child_axes), default=0.0)
    left, bottom = max(lefts) + _LINE * bool(figure.get_supylabel()), below + _LINE * bool(figure.get_supxlabel())
    near, far = (left + _PAD) / width, 1.0 - (right + 2 * _PAD) / width
    low, high = (bottom + _PAD) / height, 1.0 - (above + _PAD) / height - sum(
        one.get_window_extent().height / figure.bbox.height for one in figure.legends
    )
    across, down = max(lefts[1:], default=0.0) + 3 * _PAD, above + below + _PAD  # between two panels
    rows, columns = figure.axes[0].get_subplotspec().get_gridspec().get_geometry()  # type: ignore[union-attr]
    figure.subplots_adjust(
        left=near, right=far, bottom=low, top=high,
        wspace=columns * across / (width * (far - near) - (columns - 1) * across),
        hspace=rows * down / (height * (high - low) - (rows - 1) * down),
    )


def _widest(axis: Axis, letter: float) -> float:
    """Return the width of an axis's longest label plus its distance from the axis. `letter`: mean width of a letter."""
    return _PAD + letter * max(
        map(len, axis.get_major_formatter().format_ticks(axis.get_majorticklocs().tolist())), default=0
    )


def mark(artists: Iterable[Artist], token: str) -> None:
    """Mark `artists` for the page: `svg` writes `token` as the attribute data-mark of each artist."""
    for artist in artists:
        artist.set_gid(f"{_MARK}{token}")


def svg(figure: Figure, name: str, tips: Mapping[str, str]) -> str:
    """Render `figure` as one <svg> element that a page can contain.

    Deterministic: equal figures give equal bytes. Ids in the element depend on `name`, so that figures with different
    names can share a page. `tips` maps each token of `mark` to a tooltip.
    """
    arrange(figure)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r'\1 aria-hidden="true"', text, count=1)
    text = re.sub(r"<[^>]*>", lambda tag: _tidy(tag.group()), text)  # not the text between tags
    text = re.sub(r"\s*\n\s*", " ", text)
    for _ in range(2):
        text = re.sub(r"<g> (<(?:path|use) [^>]*/>) </g>", r"\1", text)  # unwrap groups of one element
    titles = {token: f"<title>{escape(visible_line(tip))}</title>" for token, tip in tips.items()}
    return _MARKED.sub(lambda found: f'<g data-mark="{found[1]}">{titles.get(found[1], "")}', text).strip()


def _tidy(tag: str) -> str:
    """Clean one tag: turn colours into CSS variables, drop unreferenced ids and digits too small to see."""
    tag = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", tag)  # ids of artists
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    tag = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda place: _TENTHS.sub(r"\1", place.group()), tag)
    tag = re.sub(r"font-family: [^;\"]*", "font-family: var(--font)", tag)
    for colour, variable in VARIABLES.items():
        tag = tag.replace(colour, f"var({variable})")
    return tag


# --- drawing ---------------------------------------------------------------------------------------------------------
# A figure with title, caption and alternative text.


_WIDTH = 9.4  # inches, over the whole page
HALF = 4.6  # inches, beside another figure or on a phone
_MOST_SINGLE = 200  # runs that a figure draws one by one: all figures together use about a kilobyte of the page per run


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


def token(replicate: int | None, *groups: int) -> str:
    """Return the mark of a run, of a pair of runs or, without a replicate, of a whole group; groups are indices."""
    return f"{'.'.join(map(str, groups))}-{'' if replicate is None else replicate}"


def drawn_singly(content: Content) -> frozenset[int]:
    """Return the replicates whose runs figures draw one by one: all, or only as many as a page can hold.

    These replicates are evenly spaced, so the choice depends on no outcome; they are the same in every figure.
    """
    every = sorted({block.replicate for block in content.history.blocks})
    most = max(1, _MOST_SINGLE // len(content.groups))
    return frozenset(every if len(every) <= most else (every[place * len(every) // most] for place in range(most)))


def not_drawn(content: Content) -> str:
    """Return a caption's sentence on the runs that are not drawn one by one; "" if all are."""
    every, drawn = len({block.replicate for block in content.history.blocks}), len(drawn_singly(content))
    if drawn == every:
        return ""
    return f" Drawn one by one: {drawn} of {every} seeds, evenly spaced. Everything else includes every run."


def tips(content: Content) -> dict[str, str]:
    """Return the tooltips by mark: one for every run that has an outcome, and one for every pair."""
    design = content.design
    places, value = {group: place for place, group in enumerate(content.groups)}, design.value
    return {
        token(run.run.replicate, place): f"{group}, seed {run.run.replicate}: {value(run.outcome)}"
        for group, place in places.items() for run in content.of_group(group) if run.outcome is not None
    } | {
        token(pair.replicate, places[item.question.a], places[item.question.b]):
        f"seed {pair.replicate}: {item.question.a} {value(pair.a)}, {item.question.b} {value(pair.b)}, "
        f"difference {design.difference(pair.a - pair.b)}"
        for item in content.comparisons for pair in item.pairs
    }  # fmt: skip


_OUTCOMES = {"evaluation": "", "last-tenth": " (last tenth of training)", "curve-mean": " (mean of training)"}


def outcome_label(design: Design, unit: str) -> str:
    """Return the axis label, with `unit`, of the design's outcome or of its difference."""
    lower = " (lower is better)" if design.outcome.sign < 0.0 else ""
    return f"{design.outcome.label}{_OUTCOMES[design.outcome_over]}{f', {unit}' if unit else ''}{lower}"


def shortened(name: str, most: int = 28) -> str:
    """Cut a name longer than `most` characters in the middle, to keep the plot's width; tables show the whole name."""
    name = visible_line(name)
    return name if len(name) <= most else f"{name[: most // 2]}\u2026{name[-(most // 2 - 1) :]}"


def difference(question: Question, most: int) -> str:
    """Name a comparison, with at most `most` characters of each group."""
    return f"{shortened(question.a, most)} \u2212 {shortened(question.b, most)}"


def grid(
    count: int, *, columns: int = 3, sharey: bool = False, single: tuple[float, float] = (HALF, 3.3)
) -> tuple[Figure, list[Axes]]:
    """Create a figure with exactly `count` panels, row by row; a figure with one panel has the size `single`."""
    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Picture(figsize=single if count == 1 else (_WIDTH, 0.7 + 2.0 * rows))
    flat: list[Axes] = list(figure.subplots(rows, columns, sharey=sharey, squeeze=False).flat)
    for axes in flat[count:]:
        axes.remove()
    return figure, flat[:count]


def label_axes(figure: Figure, x: str, y: str) -> None:
    """Label both axes of all panels together; pass "" for an axis that needs no label."""
    look: dict[str, Any] = {"fontsize": 9, "color": MUTED}
    if x:
        figure.supxlabel(x, **look)
    figure.supylabel(y, x=0.004, **look)


def name_rows(axes: Axes, names: Sequence[str], *, above: float, below: float) -> None:
    """Label the rows with `names`, from top to bottom, without an axis line.

    The y axis runs from `above`, at the top, to the number of rows minus `below`, at the bottom.
    """
    axes.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - below, above))
    axes.tick_params(axis="y", length=0, labelcolor=INK, labelsize=9)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def write_beside(axes: Axes, words: Sequence[str]) -> None:
    """Write a word to the right of each row."""
    beside = axes.secondary_yaxis("right")
    beside.set_yticks(range(len(words)), words, fontweight="bold")
    beside.tick_params(length=0, labelcolor=INK, labelsize=8.5)
    beside.spines["right"].set_visible(False)


def group_legend(figure: Figure, groups: list[tuple[int, str]], *, markers: bool) -> None:
    """Add a legend above the plot: group names with colour, and line or marker."""
    handles = [
        Line2D(
            [], [], color=colour(index), linestyle="none" if markers else line(index),
            marker=marker(index) if markers else "", label=shortened(name),
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
