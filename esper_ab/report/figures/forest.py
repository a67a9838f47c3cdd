"""Forest plot of experiments of one question: a row per experiment and comparison, and the result over all of them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esper_ab.contracts.errors import UsageError
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Drawing, Picture, name_rows, shortened, write_beside
from esper_ab.report.figures.effects import interval_rows
from esper_ab.report.together import ContrastTogether, Together
from esper_ab.verdict.scale import MEAN

Row = tuple[float, tuple[float, float] | None]
_ROW = 0.36  # inches


def forest_drawing(answer: Together) -> Drawing | None:
    """Return the figure of all comparisons; None if no experiment has an estimate."""
    if not _has_effects(answer):
        return None
    return Drawing(
        "forest",
        "Effect in every experiment, and over all of them",
        caption="Dot: effect. Line: its interval, by the experiment's own plan. The last row of a comparison is the "
        "pooled effect, or the random-effects mean. Shaded: within the margin. An arrowhead: the interval continues.",
        alt="; ".join(_alternative(item) for item in answer.contrasts),
        figure=forest_figure(answer),
    )


def _has_effects(answer: Together) -> bool:
    return any(effect.estimate is not None for item in answer.contrasts for effect in item.effects)


def forest_figure(answer: Together) -> Figure:
    """Draw a panel per comparison, with a row per experiment and one for all; UsageError if there is no effect."""
    if not _has_effects(answer):
        raise UsageError(f"{answer.names}: no two groups are compared in all of them, so there is no effect to draw")
    with style.look():
        heights = [_height(item) for item in answer.contrasts]
        figure = Picture(figsize=(9.4, sum(heights)))
        panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)
        for axes, item in zip(panels[:, 0], answer.contrasts, strict=True):
            _panel(axes, item)
        style.arrange(figure)
        figure.draw_without_rendering()
        return figure


def _height(item: ContrastTogether) -> float:
    return 1.2 + _ROW * (len(item.effects) + 1)


def _panel(axes: Axes, item: ContrastTogether) -> None:
    """Draw one comparison."""
    design = item.effects[0].comparison.design
    rows: list[Row] = []
    names = []
    words = []
    for effect in item.effects:
        if effect.estimate is not None:
            rows.append((effect.estimate, effect.interval))
            names.append(shortened(effect.name))
            words.append(effect.verdict)
    summary = _summary(item)
    if summary is not None:
        row, name, word = summary
        rows.append(row)
        names.append(name)
        words.append(word)
        axes.axhline(len(rows) - 1.5, color=style.MUTED, linewidth=0.8)
    interval_rows(axes, rows, design.margin)
    name_rows(axes, names, top=-0.58, bottom=0.42)
    write_beside(axes, words)
    difference = f"{shortened(item.contrast.a, 14)} − {shortened(item.contrast.b, 14)}"
    task = item.contrast.task
    if task and task != MEAN:  # whose outcome says that it is the mean
        difference = f"{shortened(task, 24)}: {difference}"
    unit = f", {design.outcome.apart}" if design.outcome.apart else ""
    axes.set_xlabel(f"{difference}: difference in {design.outcome.label}{unit}; shaded: within the margin")


def _summary(item: ContrastTogether) -> tuple[Row, str, str] | None:
    """Return the row of all experiments, its name and its word; None if there is no such row."""
    if item.pooled is not None:
        comparison = item.pooled.comparison
        if comparison.estimate is None:
            return None
        interval = None
        if comparison.low is not None and comparison.high is not None:
            interval = (comparison.low, comparison.high)
        return (comparison.estimate, interval), "pooled", str(comparison.verdict)
    if item.mean is not None:
        return (item.mean.mean, (item.mean.low, item.mean.high)), "random-effects mean", ""
    return None


def _alternative(item: ContrastTogether) -> str:
    """Describe one panel in words."""
    estimates = [(effect, effect.estimate) for effect in item.effects if effect.estimate is not None]
    parts = [f"{effect.name} {effect.comparison.design.difference(estimate)}" for effect, estimate in estimates]
    summary = _summary(item)
    if summary is not None:
        (estimate, _), name, _ = summary
        parts.append(f"{name} {item.effects[0].comparison.design.difference(estimate)}")
    task_words = f"{item.contrast.task}: " if item.contrast.task else ""
    return f"{task_words}{item.contrast.a} minus {item.contrast.b}: {', '.join(parts)}"
