"""Figure of outcomes from elsewhere: comparisons in units of their margins and, with scores, performance profiles."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import write_below
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Picture, difference, group_legend, name_rows, shortened, write_beside
from esper_ab.report.figures.effects import interval_rows
from esper_ab.verdict.answer import Answer
from esper_ab.verdict.comparison import Comparison
from esper_ab.verdict.profiles import Profile

FORMATS = ("svg", "png", "pdf")
_PROFILES_HEIGHT = 2.9  # inches


def external_figure(result: Answer) -> Figure:
    """Draw a row for each comparison that has an estimate, better to the right, and each group's profile as a curve."""
    estimated_items = [item for item in result.comparisons if item.estimate is not None]
    with style.look():
        height = 1.1 + 0.36 * max(1, len(estimated_items))
        if result.profiles:
            figure = Picture(figsize=(9.4, height + _PROFILES_HEIGHT))
            upper_axes, lower_axes = figure.subplots(2, 1, height_ratios=(height, _PROFILES_HEIGHT))
            _profiles(lower_axes, result.profiles)
            groups = list(enumerate(profile.group for profile in result.profiles))
            group_legend(figure, groups, markers=False)
        else:
            figure = Picture(figsize=(9.4, height))
            upper_axes = figure.subplots()
        _rows(upper_axes, estimated_items, exploratory=result.exploratory)
        style.arrange(figure)
        figure.draw_without_rendering()
        return figure


def write_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the file name's extension. Raises UsageError if the format is not in FORMATS."""
    form = path.suffix.removeprefix(".")
    buffer = io.BytesIO()
    if form not in FORMATS:
        raise UsageError(f"{path}: expected a name that ends in one of .{', .'.join(FORMATS)}")
    with style.look():
        if form == "png":
            metadata = {}
        elif form == "svg":
            metadata = {"Date": None}
        else:
            metadata = {"CreationDate": None}
        figure.savefig(buffer, format=form, dpi=110, metadata=metadata, transparent=False)
    write_below(path.parent, path.name, buffer.getvalue())


def _rows(axes: Axes, estimated_items: Sequence[Comparison], *, exploratory: bool) -> None:
    interval_rows(axes, list(map(_scale_to_margin, estimated_items)), 1.0)
    names = []
    words = []
    for item in estimated_items:
        task_words = f"{shortened(item.question.task, 18)}: " if item.question.task else ""
        names.append(f"{task_words}{difference(item.question, 14)}")
        if exploratory:
            words.append(f"exploratory {item.verdict}")
        else:
            words.append(str(item.verdict))
    name_rows(axes, names, top=-0.58, bottom=0.42)
    write_beside(axes, words)
    axes.set_xlabel("difference in margins, better to the right; shaded: within the margin")


def _scale_to_margin(item: Comparison) -> tuple[float, tuple[float, float] | None]:
    """Return the estimate and the interval (or None) in units of the margin, where larger is better."""
    unit = item.design.outcome.sign / item.design.margin
    estimate = unit * (item.estimate or 0.0)
    if item.low is None or item.high is None:
        return estimate, None
    low, high = sorted((unit * item.low, unit * item.high))
    return estimate, (low, high)


def _profiles(axes: Axes, profiles: Sequence[Profile]) -> None:
    for index, profile in enumerate(profiles):
        colour = style.colour(index)
        axes.fill_between(
            profile.thresholds, profile.above_low, profile.above_high, color=colour, alpha=0.15, linewidth=0
        )
        axes.plot(profile.thresholds, profile.above, color=colour, linestyle=style.line(index))
    axes.axvline(1.0, color=style.MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    axes.set(ylim=(-0.02, 1.02), xlabel="score (1: the target)", ylabel="share of runs above it")
