"""Figures by training episode: outcome, entropy of the policy, and the entropy of each head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import quantiles

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from esper_ab.journal.columns import Columns
from esper_ab.journal.fold import RunHistory
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Drawing, grid, group_legend, label_axes, not_drawn, shortened
from esper_ab.report.figures.runs import drawn_singly, token
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
    evaluated = content.design.outcome_over == "evaluation"
    measured = content.design.outcome
    words = Words(
        "curves",
        "Learning curves",
        label=f"{measured.title} (lower is better)" if measured.sign < 0.0 else measured.title,
        caption="Mean over environments in each training episode. Thin: single runs. Thick: mean of the group's "
        "runs. Band: the middle half of the runs, from four runs on."
        + (" Not the outcome: the policy still changes and explores." if evaluated else ""),
    )
    return _curves(content, words, lambda columns: columns.of("outcome"))


def entropy(content: Content) -> Drawing | None:
    """Plot the entropy of the policy by episode, for the groups that learn. None if no run has two updates."""
    return _curves(
        content,
        Words(
            "entropy",
            "Entropy of the policy",
            label="entropy per decision, nats",
            caption="Joint entropy over valid actions, before each update. It falls as the policy becomes "
            "more certain. "
            "Thin: single runs. Band: the middle half of the runs.",
        ),
        lambda columns: columns.of("entropy"),
    )


def _curves(content: Content, words: Words, value: Value) -> Drawing | None:
    by_replicate = {
        index: {run.ref.replicate: found for run in content.history.of_group(group) if len(found := curve(run, value))}
        for index, group in enumerate(content.groups)
    }
    curves = {index: list(found.values()) for index, found in by_replicate.items()}
    shown = [(index, group) for index, group in enumerate(content.groups) if any(len(one) > 1 for one in curves[index])]
    if not shown:
        return None
    singly = drawn_singly(content)
    most = max(12, _POINTS_PER_FIGURE // sum(len(singly & found.keys()) for found in by_replicate.values()))
    apart = len(shown) > _TOGETHER
    figure, axes_of = grid(len(shown) if apart else 1, sharey=True)
    for place, (index, group) in enumerate(shown):
        axes = axes_of[place if apart else 0]
        if apart:
            axes.set_title(shortened(group))
            for other, _ in shown:
                if other != index:
                    _line(axes, binned(mean_curve(curves[other]), most), color=style.GRID, linewidth=1.2)
        plot_runs(axes, index, by_replicate[index], singly, most)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if not apart:
        group_legend(figure, shown, markers=False)
    label_axes(figure, "training episode", words.label)
    middles = {group: mean_curve(curves[index]) for index, group in shown}
    ends = (f"{group} from {found[0, 1]:.2f} to {found[-1, 1]:.2f}" for group, found in middles.items())
    return Drawing(
        words.name,
        words.title,
        caption=words.caption + (" Grey: the means of the other groups." if apart else "") + not_drawn(content),
        alt=f"{words.label}, first to last episode, mean over runs: " + "; ".join(ends) + ".",
        figure=figure,
        wide=apart,
    )


def plot_runs(axes: Axes, index: int, by_replicate: Mapping[int, Floats], singly: frozenset[int], most: int) -> None:
    """Plot each run of the replicates in `singly`, and the mean and the band of the middle half of all runs."""
    colour = style.colour(index)
    curves = list(by_replicate.values())
    alpha = 0.35 if len(curves) <= 8 else 0.2
    for replicate in sorted(singly & by_replicate.keys()):
        drawn = _line(axes, binned(by_replicate[replicate], most), color=colour, linewidth=0.8, alpha=alpha)
        style.mark(drawn, token(replicate, index))
    if len(curves) >= _RUNS_FOR_BAND:
        band = _middle_half(curves, most)
        filled = axes.fill_between(
            [x for x, _, _ in band],
            [y for _, y, _ in band],
            [y for _, _, y in band],
            color=colour,
            alpha=0.16,
            linewidth=0,
        )
        style.mark([filled], token(None, index))
    _middle(axes, index, binned(mean_curve(curves), most), 2.2)


def _middle(axes: Axes, index: int, points: Floats, width: float) -> None:
    """Plot the mean of a group; a single point is drawn as the group's marker."""
    drawn = _line(
        axes,
        points,
        color=style.colour(index),
        linestyle=style.line(index),
        linewidth=width,
        marker=style.marker(index) if len(points) == 1 else "",
    )
    style.mark(drawn, token(None, index))


def _line(axes: Axes, points: Floats, **look: object) -> list[Line2D]:
    return axes.plot(points[:, 0], points[:, 1], **look)  # type: ignore[arg-type]


def curve(run: RunHistory, value: Value) -> Floats:
    """Return [points, (episode, value)] of one run; episodes start at 1, and episodes without a value are left out."""
    points = np.column_stack((np.array(run.columns.episodes) + 1.0, np.array(value(run.columns), dtype=np.float64)))
    there: Floats = points[~np.isnan(points[:, 1])]
    return there


def mean_curve(curves: Sequence[Floats]) -> Floats:
    """Return the mean curve; each episode is averaged over the runs that have reached it."""
    points = np.concatenate(curves)
    episodes = points[:, 0].astype(np.int64)
    total = np.bincount(episodes, points[:, 1])
    count = np.bincount(episodes)
    there = np.flatnonzero(count)
    return np.column_stack((there, total[there] / count[there]))


def _middle_half(curves: Sequence[Floats], most: int) -> list[tuple[float, float, float]]:
    """Return (episode, lower quartile, upper quartile) over the binned curves of all runs."""
    by_episode: dict[float, list[float]] = {}
    for one in curves:
        for episode, number in binned(one, most).tolist():
            by_episode.setdefault(episode, []).append(number)
    quarters = (
        (episode, quantiles(values, method="inclusive"))
        for episode, values in sorted(by_episode.items())
        if len(values) >= _RUNS_FOR_BAND
    )
    return [(episode, low, high) for episode, (low, _, high) in quarters]


def binned(points: Floats, most: int) -> Floats:
    """Reduce a curve to at most `most` points, each the mean of equally many episodes."""
    width = -(-len(points) // most)
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


def panels(content: Content, words: Words, values: Mapping[str, Value], *, unit: bool = False) -> Drawing | None:
    """Plot one panel per name in `values`, with one line per group: the mean over the group's runs."""
    found = {
        (name, index): mean_curve([curve(run, value) for run in content.history.of_group(group)])
        for name, value in values.items()
        for index, group in enumerate(content.groups)
    }
    names = list(dict.fromkeys(name for (name, _), points in found.items() if len(points)))
    shown = [(i, group) for i, group in enumerate(content.groups) if any(len(found[name, i]) for name in names)]
    if not shown:
        return None
    most = max(12, _POINTS_PER_FIGURE // (len(names) * len(shown)))
    figure, axes_of = grid(len(names), columns=4 if len(names) > 6 else 3, sharey=unit)
    for axes, name in zip(axes_of, names, strict=True):
        axes.set_title(name)
        for index, _ in shown:
            _middle(axes, index, binned(found[name, index], most), 1.8)
        axes.set_ylim(*((-0.03, 1.03) if unit else (0, max(1.12 * axes.dataLim.ymax, 0.1))))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    label_axes(figure, "training episode", words.label)
    group_legend(figure, shown, markers=False)
    ends = []
    for index, group in shown:
        last = (f"{name} {found[name, index][-1, 1]:.2f}" for name in names if len(found[name, index]))
        ends.append(f"{group}: " + ", ".join(last))
    return Drawing(
        words.name,
        words.title,
        caption=words.caption,
        alt=f"{words.label}, last episode, mean over runs: " + "; ".join(ends) + ".",
        figure=figure,
    )
