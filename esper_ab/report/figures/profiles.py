"""Figure of the performance profiles: the share of a group's runs above an outcome, as rliable draws one task."""

from __future__ import annotations

import numpy as np

from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import HALF, Drawing, grid, group_legend
from esper_ab.report.figures.runs import outcome_label
from esper_ab.stats.descriptive.profile import share_above

_STEPS = 200
_LEAST_RUNS = 2  # a band of one run has no width


def profiles(content: Content) -> Drawing | None:
    """Plot each group's share of runs above an outcome, with its band. None if no group has two outcomes."""
    design = content.design
    outcomes = {}
    for index, group in enumerate(content.groups):
        known_outcomes = [run.outcome for run in content.of_group(group) if run.outcome is not None]
        if len(known_outcomes) >= _LEAST_RUNS:
            outcomes[index] = known_outcomes
    if not outcomes:
        return None
    all_outcomes = np.concatenate(list(outcomes.values()))
    thresholds = np.linspace(all_outcomes.min(), all_outcomes.max(), _STEPS + 1)
    figure, (axes,) = grid(1, single_size=(HALF, 3.3))
    middles = []
    for index, values in outcomes.items():
        profile = share_above(values, thresholds)
        colour = style.colour(index)
        axes.fill_between(thresholds, profile.low, profile.high, color=colour, alpha=0.15, linewidth=0, step="post")
        axes.plot(thresholds, profile.shares, color=colour, linestyle=style.line(index), drawstyle="steps-post")
        median = f"{np.median(values):.{design.digits}f}"
        middles.append(f"{content.groups[index]} {design.outcome.value(median)}")
    axes.set(ylim=(-0.02, 1.02), xlabel=outcome_label(design, design.outcome.unit), ylabel="share of runs above it")
    group_legend(figure, [(index, content.groups[index]) for index in outcomes], markers=False)
    return Drawing(
        "profiles",
        "Performance profiles",
        caption="The share of a group's runs whose outcome exceeds a value. Band: 95 % bootstrap over its runs, at "
        "each value; with fewer than ten runs its coverage is below 95 %.",
        alt="Half of the runs are above: " + "; ".join(middles) + ".",
        figure=figure,
        wide=False,
    )
