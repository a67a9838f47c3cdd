"""Figures by training episode: outcome, entropy of the policy, and the entropy of each head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import methodcaller
from statistics import quantiles

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from esper_ab.journal.columns import Columns
from esper_ab.journal.fold import RunHistory
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Drawing, grid, group_legend, label_axes, shortened
from esper_ab.report.figures.runs import drawn_singly, not_drawn, token
from esper_ab.report.kind import tables_of
from esper_ab.stats.floats import Floats

_POINTS_PER_FIGURE = 3000  # keeps the page small: longer curves are averaged over bins
_TOGETHER = 3  # most groups that share one panel; more groups get a panel each
_RUNS_FOR_BAND = 4
Value = Callable[[Columns], Sequence[float]]  # a number per episode; NaN where it is absent


@dataclass(frozen=True)
class Words:
    """Texts of a figure whose x axis is the episode."""

    name: str
    title: str
    label: str  # of the vertical axis
    caption: str


def outcome(content: Content) -> Drawing | None:
    """Plot the outcome of every training episode. None if no run has two episodes."""
    label = content.design.outcome.title
    if content.design.outcome.sign < 0.0:
        label += " (lower is better)"
    kind = tables_of(content)
    caption = (
        f"{kind.curve} Thin: single runs. Thick: mean of the group's runs. Band: the middle half of the runs, from "
        "four runs on."
    )
    if content.design.outcome_over == "evaluation":
        caption += f" Not the outcome: {kind.not_the_outcome}."
    words = Words("curves", "Learning curves", label=label, caption=caption)
    return _curves(content, words, methodcaller("of", "outcome"))


def entropy(content: Content) -> Drawing | None:
    """Plot the entropy of the policy by episode, for the groups that learn. None if no run has two updates."""
    words = Words(
        "entropy",
        "Entropy of the policy",
        label="entropy per decision, nats",
        caption="Joint entropy over valid actions, before each update. It falls as the policy becomes more certain. "
        "Thin: single runs. Band: the middle half of the runs.",
    )
    return _curves(content, words, methodcaller("of", "entropy"))


def _curves(content: Content, words: Words, value: Value) -> Drawing | None:
    by_group = [_curves_of(content.history.of_group(group), value) for group in content.groups]
    groups = []
    for index, group in enumerate(content.groups):
        if any(len(points) > 1 for points in by_group[index].values()):
            groups.append((index, group))
    if not groups:
        return None
    single_replicates = drawn_singly(content)
    drawn_lines = sum(len(single_replicates & by_replicate.keys()) for by_replicate in by_group)
    most_points = max(12, _POINTS_PER_FIGURE // drawn_lines)
    means = {index: mean_curve(list(by_group[index].values())) for index, _ in groups}
    one_panel_each = len(groups) > _TOGETHER
    figure, panels = grid(len(groups) if one_panel_each else 1, sharey=True)
    for place, (index, group) in enumerate(groups):
        axes = panels[place] if one_panel_each else panels[0]
        if one_panel_each:
            axes.set_title(shortened(group))
            for other_index, points in means.items():
                if other_index != index:
                    _line(axes, binned(points, most_points), color=style.GRID, linewidth=1.2)
        plot_runs(axes, index, by_group[index], single_replicates, most_points)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    caption = words.caption
    if one_panel_each:
        caption += " Grey: the means of the other groups."
    else:
        group_legend(figure, groups, markers=False)
    label_axes(figure, tables_of(content).episode, words.label)
    ends = [f"{group} from {means[index][0, 1]:.2f} to {means[index][-1, 1]:.2f}" for index, group in groups]
    return Drawing(
        words.name,
        words.title,
        caption=caption + not_drawn(content),
        alt=f"{words.label}, first to last episode, mean over runs: " + "; ".join(ends) + ".",
        figure=figure,
        wide=one_panel_each,
    )


def _curves_of(runs: Sequence[RunHistory], value: Value) -> dict[int, Floats]:
    """Return the curves of runs by replicate, without those that have no point."""
    curves = {run.ref.replicate: curve(run, value) for run in runs}
    return {replicate: points for replicate, points in curves.items() if len(points)}


def plot_runs(
    axes: Axes, index: int, by_replicate: Mapping[int, Floats], single_replicates: frozenset[int], most_points: int
) -> None:
    """Plot each run of `single_replicates`, and the mean and the band of the middle half of all runs."""
    colour = style.colour(index)
    curves = list(by_replicate.values())
    alpha = 0.35 if len(curves) <= 8 else 0.2
    for replicate in sorted(single_replicates & by_replicate.keys()):
        run_line = _line(axes, binned(by_replicate[replicate], most_points), color=colour, linewidth=0.8, alpha=alpha)
        style.mark(run_line, token(replicate, index))
    if len(curves) >= _RUNS_FOR_BAND:
        band = _middle_half(curves, most_points)
        episodes = [episode for episode, _, _ in band]
        lower_ends = [low for _, low, _ in band]
        upper_ends = [high for _, _, high in band]
        band_area = axes.fill_between(episodes, lower_ends, upper_ends, color=colour, alpha=0.16, linewidth=0)
        style.mark([band_area], token(None, index))
    _middle(axes, index, binned(mean_curve(curves), most_points), 2.2)


def _middle(axes: Axes, index: int, points: Floats, width: float) -> None:
    """Plot the mean of a group; a single point is drawn as the group's marker."""
    middle_line = _line(
        axes,
        points,
        color=style.colour(index),
        linestyle=style.line(index),
        linewidth=width,
        marker=style.marker(index) if len(points) == 1 else "",
    )
    style.mark(middle_line, token(None, index))


def _line(axes: Axes, points: Floats, **look: object) -> list[Line2D]:
    return axes.plot(points[:, 0], points[:, 1], **look)  # type: ignore[arg-type]


def curve(run: RunHistory, value: Value) -> Floats:
    """Return [points, (episode, value)] of one run; episodes start at 1, and episodes without a value are left out."""
    episodes = np.array(run.columns.episodes) + 1.0
    values = np.array(value(run.columns), dtype=np.float64)
    points = np.column_stack((episodes, values))
    present_points: Floats = points[~np.isnan(values)]
    return present_points


def mean_curve(curves: Sequence[Floats]) -> Floats:
    """Return the mean curve; each episode is averaged over the runs that have reached it."""
    points = np.concatenate(curves)
    episodes = points[:, 0].astype(np.int64)
    total = np.bincount(episodes, points[:, 1])
    count = np.bincount(episodes)
    present_episodes = np.flatnonzero(count)
    return np.column_stack((present_episodes, total[present_episodes] / count[present_episodes]))


def _middle_half(curves: Sequence[Floats], most_points: int) -> list[tuple[float, float, float]]:
    """Return (episode, lower quartile, upper quartile) over the binned curves of all runs."""
    by_episode: dict[float, list[float]] = {}
    for points in curves:
        for episode, number in binned(points, most_points).tolist():
            by_episode.setdefault(episode, []).append(number)
    band = []
    for episode, values in sorted(by_episode.items()):
        if len(values) >= _RUNS_FOR_BAND:
            low, _, high = quantiles(values, method="inclusive")
            band.append((episode, low, high))
    return band


def binned(points: Floats, most_points: int) -> Floats:
    """Reduce a curve to at most `most_points` points, each the mean of equally many episodes."""
    width = -(-len(points) // most_points)
    if width <= 1:
        return points
    starts = np.arange(0, len(points), width)
    lengths = np.diff(np.append(starts, len(points)))
    means: Floats = np.add.reduceat(points, starts) / lengths[:, None]
    return means


def heads(content: Content) -> Drawing | None:
    """Plot the normalised entropy of every head of the policy, one panel per head. None if no record has heads."""
    words = Words(
        "heads",
        "How decided each head is",
        label="entropy / its maximum",
        caption="Entropy of each head over its valid choices, as a share of the largest possible, where it had a "
        "choice; mean over runs. 1: undecided. 0: always the same. A head that is never used has no line.",
    )
    heads = {head.replace("_", " "): partial(_head_entropy, head) for head in content.history.heads}
    return panels(content, words, heads, unit=True)


def _head_entropy(head: str, columns: Columns) -> Sequence[float]:
    if head in columns.heads:
        return columns.head(head)[0]
    return [math.nan] * len(columns)


def _means_by_group(content: Content, value: Value) -> list[Floats]:
    """Return each group's mean curve, in the order of the groups."""
    means = []
    for group in content.groups:
        curves = [curve(run, value) for run in content.history.of_group(group)]
        means.append(mean_curve(curves))
    return means


def panels(content: Content, words: Words, values: Mapping[str, Value], *, unit: bool = False) -> Drawing | None:
    """Plot one panel per name in `values`, with one line per group: the mean over the group's runs."""
    means = {name: _means_by_group(content, value) for name, value in values.items()}  # [name][group]
    means = {name: curves for name, curves in means.items() if any(map(len, curves))}
    groups = []
    for index, group in enumerate(content.groups):
        if any(len(curves[index]) for curves in means.values()):
            groups.append((index, group))
    if not groups:
        return None
    most_points = max(12, _POINTS_PER_FIGURE // (len(means) * len(groups)))
    columns = 4 if len(means) > 6 else 3
    figure, panel_axes = grid(len(means), columns=columns, sharey=unit)
    for axes, (name, curves) in zip(panel_axes, means.items(), strict=True):
        axes.set_title(name)
        for index, _ in groups:
            _middle(axes, index, binned(curves[index], most_points), 1.8)
        if unit:
            axes.set_ylim(-0.03, 1.03)
        else:
            axes.set_ylim(0, max(1.12 * axes.dataLim.ymax, 0.1))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    label_axes(figure, "training episode", words.label)
    group_legend(figure, groups, markers=False)
    ends = []
    for index, group in groups:
        last_words = [f"{name} {curves[index][-1, 1]:.2f}" for name, curves in means.items() if len(curves[index])]
        ends.append(f"{group}: " + ", ".join(last_words))
    return Drawing(
        words.name,
        words.title,
        caption=words.caption,
        alt=f"{words.label}, last episode, mean over runs: " + "; ".join(ends) + ".",
        figure=figure,
    )
