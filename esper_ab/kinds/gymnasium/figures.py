"""Figures for Gymnasium environments: the reward that each group learns from, on its own scale."""

from __future__ import annotations

from operator import methodcaller
from typing import ClassVar

from matplotlib.ticker import MaxNLocator

from esper_ab.analysis.own_reward import own_rewards
from esper_ab.report.content import Content
from esper_ab.report.figures.curves import curve, plot_runs
from esper_ab.report.figures.drawing import Drawing, grid, label_axes, shortened
from esper_ab.report.figures.kind import BySection, FiguresKind
from esper_ab.report.figures.runs import drawn_singly, not_drawn

_MOST_POINTS = 300  # of a line


def own_reward(content: Content) -> Drawing | None:
    """Plot every learning group's own reward by training episode, in a panel each. None if no group learns."""
    learning = own_rewards(content.history)
    if not learning:
        return None
    figure, panels = grid(len(learning), single_size=(9.4, 3.0))
    words = []
    for axes, group_reward in zip(panels, learning, strict=True):
        runs = content.history.of_group(group_reward.group)
        curves = {run.ref.replicate: curve(run, methodcaller("of", "reward")) for run in runs}
        plot_runs(axes, content.groups.index(group_reward.group), curves, drawn_singly(content), _MOST_POINTS)
        axes.set_title(shortened(group_reward.group))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        first_reward, last_reward = group_reward.reward
        if first_reward is not None and last_reward is not None:
            words.append(f"{group_reward.group} from {first_reward:.2f} to {last_reward:.2f}")
    label_axes(figure, "training episode", "own reward")
    return Drawing(
        "own-reward",
        "The reward that each group learns by",
        caption="Sum over a training episode, mean over environments; each panel has its own scale, because rewards of "
        "different groups are not comparable. Thin: single runs. Thick: their mean. Band: the middle half "
        "of the runs, from four runs on. The outcome by which groups are compared is in the learning curves."
        + not_drawn(content),
        alt="Own reward, first to last tenth, mean over runs: " + "; ".join(words) + ".",
        figure=figure,
    )


class GymnasiumFigures(FiguresKind):
    """The figure of each group's own reward during training."""

    by_section: ClassVar[BySection] = {"training": {"own-reward": own_reward}}


KIND = GymnasiumFigures()
