"""Figures of the evaluation: differences with their intervals, pairs, cost against accuracy."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from esper_ab.report import style
from esper_ab.report.content import Content
from esper_ab.report.drawing import Drawing, group_legend
from esper_ab.stats.wording import interval, n_pairs, points


def effects(content: Content) -> Drawing | None:
    """Every comparison on one axis: pair differences, mean, interval, zero, and the margin. None without a pair."""
    shown = [item for item in content.comparisons if item.difference is not None]
    if not shown:
        return None
    margin = shown[0].question.margin
    figure = Figure(figsize=(8.6, 0.9 + 0.55 * len(shown)))
    axes = figure.subplots()
    axes.axvspan(-margin, margin, color=style.BAND, linewidth=0)
    axes.axvline(0, color=style.MUTED, linewidth=1)
    words = []
    for row, item in enumerate(shown):
        d = item.difference
        if d is None:
            continue
        axes.plot(
            [pair.a - pair.b for pair in item.pairs], [row] * len(item.pairs), "|", color=style.MUTED, markersize=9
        )
        if d.low is not None and d.high is not None:
            axes.plot([d.low, d.high], [row, row], color=style.INK, linewidth=2.4, solid_capstyle="butt")
        axes.plot([d.mean], [row], "o", color=style.INK, markersize=6.5)
        words.append(f"{item.question.a} minus {item.question.b}: {points(d.mean)} points, {interval(d)}")
    axes.set_yticks(range(len(shown)), [f"{item.question.a} \u2212 {item.question.b}" for item in shown])
    axes.tick_params(axis="y", length=0, labelcolor=style.INK, labelsize=9)
    axes.set_ylim(len(shown) - 0.45, -0.55)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("difference in held-out accuracy, points")
    return Drawing(
        name="effects",
        title="Effect, with its interval",
        caption=f"Dot: mean of the paired differences. Bar: its interval. Ticks: single pairs. Shaded: within "
        f"{margin:g} points of zero, the smallest difference worth acting on.",
        alt="; ".join(words) + ".",
        svg=style.svg(figure, "effects"),
        wide=True,
    )


def pairs(content: Content) -> Drawing | None:
    """One line per replicate through the endpoints of its groups. None without an endpoint."""
    lines: dict[int, list[tuple[int, float]]] = {}
    for index, group in enumerate(content.groups):
        for outcome in content.of_group(group):
            if outcome.endpoint is not None:
                lines.setdefault(outcome.run.replicate, []).append((index, outcome.endpoint))
    if not lines:
        return None
    figure = Figure(figsize=(4.6, 3.3))
    axes = figure.subplots()
    for ends in lines.values():
        axes.plot([x for x, _ in ends], [y for _, y in ends], color=style.MUTED, linewidth=1, alpha=0.7)
        for index, value in ends:
            axes.plot(index, value, style.marker(index), color=style.colour(index), markersize=6)
    axes.set_xticks(range(len(content.groups)), content.groups)
    axes.tick_params(axis="x", length=0, labelcolor=style.INK, labelsize=9)
    axes.set_xlim(-0.4, len(content.groups) - 0.6)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("held-out accuracy, %")
    first = content.comparisons[0]
    return Drawing(
        name="pairs",
        title="The pairs behind it",
        caption="Each line is one replicate: the same randomness in every group. Every point is one trained policy.",
        alt=f"{n_pairs(len(first.pairs))} of {first.question.a} and {first.question.b}; values in the table of pairs.",
        svg=style.svg(figure, "pairs"),
    )


def cost(content: Content) -> Drawing | None:
    """Parameters added against accuracy, one point per run. None without an endpoint."""
    shown: list[tuple[int, str]] = []
    words = []
    figure = Figure(figsize=(4.6, 3.3))
    axes = figure.subplots()
    for index, group in enumerate(content.groups):
        runs = [
            (run.params_added, run.endpoint)
            for run in content.of_group(group)
            if run.params_added is not None and run.endpoint is not None
        ]
        if not runs:
            continue
        shown.append((index, group))
        added, accuracy = [x for x, _ in runs], [y for _, y in runs]
        axes.plot(
            added, accuracy, style.marker(index), color=style.colour(index), markersize=6, alpha=0.85, clip_on=False
        )
        words.append(f"{group}: {sum(added) / len(added):,.0f} parameters, {sum(accuracy) / len(accuracy):.1f} %")
    if not shown:
        return None
    axes.set_xlim(0, 1.1 * max(axes.dataLim.xmax, 1.0))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.set_xlabel("parameters added per host")
    axes.set_ylabel("held-out accuracy, %")
    group_legend(figure, shown, markers=True)
    return Drawing(
        name="cost",
        title="Cost against accuracy",
        caption="One point per run, from its evaluation. Further up is better, further left is cheaper.",
        alt="Means: " + "; ".join(words) + ".",
        svg=style.svg(figure, "cost"),
    )
