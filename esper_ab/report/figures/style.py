"""Common style of all figures.

Figures are drawn in the page's colours for light mode. In the page each of them becomes a CSS variable, so that one
SVG serves light and dark mode. Groups differ in colour, line and marker: every figure is readable without colour.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import escape
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure

from esper_ab.contracts.visible import visible_line

INK = "#1c1d20"
MUTED = "#5d6068"
GRID = "#dcdcd6"
BAND = "#efeee6"
CARD = "#ffffff"
# Colours of groups; further groups repeat them with the next line style and marker.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b0548a", "#b07d00", "#3b8fc2")
MOST_COLOURS = len(_COLOURS)
# Shades of a seed's life, from faint to strong; they differ in lightness alone.
STAGES = ("#e8ebee", "#c9d6e0", "#9db9cd", "#6a95b3", "#3a6c90", "#173d5c")
VARIABLES = {  # colour -> its name in report.css
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    BAND: "--band",
    CARD: "--card",
    **{colour: f"--group-{i}" for i, colour in enumerate(_COLOURS)},
    **{colour: f"--stage-{i}" for i, colour in enumerate(STAGES)},
}
_VARIABLE_COLOUR = re.compile("|".join(VARIABLES))
_PAD = 6.0  # points: the edge
_LINE = 14.0  # points: a line of labels with its spacing
_TENTHS = re.compile(r"(\d\.\d)\d+")  # coordinates in points (1/72 inch), rounded to tenths
# Matplotlib's markers whose tip is the point.
ARROW_LEFT = 4
ARROW_RIGHT = 5
_MARK = "mark:"
_MARKED = re.compile(rf'<g id="{_MARK}([0-9.-]+)">')
_LINES = ("-", (0, (5, 2)), (0, (1, 1.4)), (0, (6, 2, 1, 2)), (0, (3, 1)), (0, (1, 3)))
_MARKERS = "osD^vP"
_RC: Any = {  # matplotlib types its keys one by one
    "axes.axisbelow": True,
    "axes.edgecolor": GRID,
    "axes.grid": True,
    "axes.labelcolor": MUTED,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "savefig.transparent": True,
    "svg.fonttype": "none",
    "svg.hashsalt": "esper_ab",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": GRID,
    "xtick.labelcolor": MUTED,
    "xtick.labelsize": 8.5,
    "ytick.color": GRID,
    "ytick.labelcolor": MUTED,
    "ytick.labelsize": 8.5,
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
    panels = figure.axes
    left_margins = [_left_of(axes) for axes in panels]
    left_margin = max(left_margins)
    if figure.get_supylabel():
        left_margin += _LINE
    right_margin = max(
        (_widest(right_axis.yaxis, 6.6) for axes in panels for right_axis in axes.child_axes), default=0.0
    )
    for axes in panels:
        _fix_title(axes)
    top_margin = 0.0
    if any(axes.get_title("left") or axes.yaxis.get_major_formatter().get_offset() for axes in panels):
        top_margin = _LINE
    bottom_margin = _LINE
    if any(axes.get_xlabel() for axes in panels):
        bottom_margin += _LINE
    bottom = bottom_margin
    if figure.get_supxlabel():
        bottom += _LINE
    legends = sum(legend.get_window_extent().height / figure.bbox.height for legend in figure.legends)
    left_share = (left_margin + _PAD) / width
    right_share = 1.0 - (right_margin + 2 * _PAD) / width
    low = (bottom + _PAD) / height
    high = 1.0 - (top_margin + _PAD) / height - legends
    panel_distance = max(left_margins[1:], default=0.0) + 3 * _PAD  # between two panels
    panel_gap = top_margin + bottom_margin + _PAD  # between two panels
    rows, columns = panels[0].get_subplotspec().get_gridspec().get_geometry()  # type: ignore[union-attr]
    figure.subplots_adjust(
        left=left_share,
        right=right_share,
        bottom=low,
        top=high,
        wspace=columns * panel_distance / (width * (right_share - left_share) - (columns - 1) * panel_distance),
        hspace=rows * panel_gap / (height * (high - low) - (rows - 1) * panel_gap),
    )


def _fix_title(axes: Axes) -> None:
    """Keep a title where it is. Else matplotlib lays out all labels to see whether an offset of the y axis is there."""
    title = axes.get_title("left")
    if title and not axes.yaxis.get_major_formatter().get_offset():
        axes.set_title(title, y=1.0)


def _left_of(axes: Axes) -> float:
    """Return the width of the labels on the left of a panel."""
    width = 0.0
    if axes.get_ylabel():
        width += _LINE
    if axes.yaxis.get_tick_params()["labelleft"]:
        width += _widest(axes.yaxis, 5.4)
    return width


def _widest(axis: Axis, letter: float) -> float:
    """Return the width of an axis's longest label plus its distance from the axis. `letter`: mean width of a letter."""
    labels = axis.get_major_formatter().format_ticks(axis.get_majorticklocs().tolist())
    return _PAD + letter * max(map(len, labels), default=0)


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

    def mark_group(group: re.Match[str]) -> str:
        token = group[1]
        return f'<g data-mark="{token}">{titles.get(token, "")}'

    return _MARKED.sub(mark_group, text).strip()


def _tidy(tag: str) -> str:
    """Clean one tag: turn colours into CSS variables, drop unreferenced ids and digits too small to see."""
    if "=" not in tag:
        return tag
    tag = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", tag)  # ids of artists
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag)
    tag = re.sub(r' (?:d|x|y|transform)="[^"]*"', lambda place: _TENTHS.sub(r"\1", place.group()), tag)
    tag = re.sub(r"font-family: [^;\"]*", "font-family: var(--font)", tag)
    return _VARIABLE_COLOUR.sub(lambda colour: f"var({VARIABLES[colour.group()]})", tag)
