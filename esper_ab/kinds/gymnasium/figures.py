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
    figure, panels = grid(len(learning), single=(9.4, 3.0))
    words = []
    for axes, own in zip(panels, learning, strict=True):
        runs = content.history.of_group(own.group)
        curves = {run.ref.replicate: curve(run, methodcaller("of", "reward")) for run in runs}
        plot_runs(axes, content.groups.index(own.group), curves, drawn_singly(content), _MOST_POINTS)
        axes.set_title(shortened(own.group))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
        first, last = own.reward
        if first is not None and last is not None:
            words.append(f"{own.group} from {first:.2f} to {last:.2f}")
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
