"""Figures for Gymnasium environments: the reward that each group learns from, on its own scale."""

from __future__ import annotations

from matplotlib.ticker import MaxNLocator

from esper_ab.analysis.learning import own_rewards
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.curves import binned, curve, mean_curve
from esper_ab.report.figures.kinds import FiguresOfKind
from esper_ab.report.figures.style import Drawing, grid, label_axes, shortened

_MOST_POINTS = 300  # of a line


def own_reward(content: Content) -> Drawing | None:
    """Plot every learning group's own reward by training episode, in a panel each. None if no group learns."""
    found = own_rewards(content.history)
    if not found:
        return None
    figure, panels = grid(len(found), single=(9.4, 3.0))
    for axes, one in zip(panels, found, strict=True):
        index = content.groups.index(one.group)
        curves = [curve(run, lambda columns: columns.of("reward")) for run in content.history.of_group(one.group)]
        for points in (points for points in curves if len(points)):
            thin = binned(points, _MOST_POINTS)
            axes.plot(thin[:, 0], thin[:, 1], color=style.colour(index), linewidth=0.8, alpha=0.3)
        middle = binned(mean_curve(curves), _MOST_POINTS)
        axes.plot(middle[:, 0], middle[:, 1], color=style.colour(index), linestyle=style.line(index), linewidth=2.2)
        axes.set_title(shortened(one.group))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    label_axes(figure, "training episode", "own reward")
    ends = (f"{one.group} from {one.reward[0]:.2f} to {one.reward[1]:.2f}" for one in found if None not in one.reward)
    return Drawing(
        "own-reward", "The reward that each group learns by",
        caption="Sum over a training episode, mean over environments; each panel has its own scale, because rewards of "
        "different groups are not comparable. Thin: single runs. Thick: their mean. The outcome by which "
        "groups are compared is in the learning curves.",
        alt="Own reward, first to last tenth, mean over runs: " + "; ".join(ends) + ".", figure=figure,
    )


KIND: FiguresOfKind = {"training": {"own-reward": own_reward}}
