"""Figures of a reward audit: best of n, return against outcome, and when in the episode each reward pays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

from esper_ab.analysis.reward_audit import RewardAuditFindings, RewardFindings
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import Drawing, grid, group_legend, label_axes, shortened
from esper_ab.stats.floats import Bools

_TICKS = (1, 2, 4, 8, 16, 32, 64)


def drawings(audit: RewardAuditFindings) -> list[Drawing]:
    """Draw all figures of a reward audit by itself, in reading order."""
    with style.look():
        return [draw(audit) for draw in FIGURES.values()]


def _draw_if_audited(draw: Callable[[RewardAuditFindings], Drawing], content: Content) -> Drawing | None:
    """Draw a figure of an experiment's reward audit. None if there is no audit."""
    audit = content.analysis.reward_audit
    if audit is None:
        return None
    return draw(audit)


def _names(audit: RewardAuditFindings) -> list[tuple[int, str]]:
    return list(enumerate(reward.name for reward in audit.rewards))


def best_of_n(audit: RewardAuditFindings) -> Drawing:
    """Plot, for each reward, the expected outcome of its favourite among n random schedules."""
    figure, (axes,) = grid(1, single_size=(9.4, 3.6))
    sizes = np.arange(1, len(audit.own_curve) + 1)
    axes.plot(sizes, audit.own_curve, color=style.MUTED, linewidth=1.6, linestyle=":")
    axes.annotate(
        "the best there is",
        (float(sizes[-1]), float(audit.own_curve[-1])),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=8.5,
        color=style.MUTED,
    )
    for index, reward in enumerate(audit.rewards):
        axes.plot(sizes, reward.curve, color=style.colour(index), linestyle=style.line(index), linewidth=2.2)
    if len(sizes) > 1:
        axes.set_xscale("log", base=2)
    ticks = [tick for tick in _TICKS if tick <= len(sizes)]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel="n random schedules to choose from", ylabel="held-out accuracy, %")
    group_legend(figure, _names(audit), markers=False)
    ends = "; ".join(f"{reward.name} {reward.curve[0]:.1f} to {reward.curve[-1]:.1f}" for reward in audit.rewards)
    return Drawing(
        "best-of-n",
        "Best of n: outcome of the favourite of each reward",
        caption="Expected outcome of the best-paid of n random schedules. The gap to the dotted line is the "
        "cost of choosing by it. A falling line means that the reward does more harm the harder it is optimised.",
        alt=f"Held-out accuracy of the favourite of 1 and of {len(sizes)}: {ends}; the best there is "
        f"{audit.own_curve[0]:.1f} to {audit.own_curve[-1]:.1f}.",
        figure=figure,
    )


def returns(audit: RewardAuditFindings) -> Drawing:
    """Draw return against outcome."""
    columns = 4 if len(audit.rewards) > 6 else 3
    figure, panels = grid(len(audit.rewards), columns=columns, sharey=True)
    random_mask = np.array([behaviour.kind == "random" for behaviour in audit.behaviours])
    favourites = []
    for index, (axes, reward) in enumerate(zip(panels, audit.rewards, strict=True)):
        _cloud(axes, reward, audit, random_mask, style.colour(index))
        favourite = audit.behaviours[reward.favourite].name
        favourites.append(f"{reward.name}: pays most for {favourite}, {audit.outcomes[reward.favourite]:.1f} %")
    label_axes(figure, "return", "held-out accuracy, %")
    return Drawing(
        "returns",
        "Return against outcome",
        caption="Each point is a behaviour: faint a random schedule, filled a reference behaviour, ringed the "
        "reward's favourite. A good reward has its rightmost points at the top. Scales of returns are not comparable.",
        alt="; ".join(favourites) + ".",
        figure=figure,
    )


def _cloud(axes: Axes, reward: RewardFindings, audit: RewardAuditFindings, random_mask: Bools, colour: str) -> None:
    axes.set_title(shortened(reward.name))
    axes.scatter(reward.returns[random_mask], audit.outcomes[random_mask], s=16, color=colour, alpha=0.35, linewidths=0)
    axes.scatter(reward.returns[~random_mask], audit.outcomes[~random_mask], s=24, color=colour, linewidths=0)
    axes.scatter(
        reward.returns[reward.favourite],
        audit.outcomes[reward.favourite],
        s=90,
        facecolors="none",
        edgecolors=style.INK,
        linewidths=1.2,
    )
    axes.locator_params(axis="x", nbins=4)


def when_paid(audit: RewardAuditFindings) -> Drawing:
    """Draw when in the episode each reward pays."""
    figure, (axes,) = grid(1, single_size=(9.4, 2.8))
    words = []
    for index, reward in enumerate(audit.rewards):
        steps = np.arange(1, len(reward.paid) + 1)
        axes.step(steps, 100 * reward.paid, where="post", color=style.colour(index), linestyle=style.line(index))
        if reward.half_paid is None:
            words.append(f"{reward.name}: nothing is paid")
        else:
            words.append(f"{reward.name}: half by step {reward.half_paid}")
    axes.set(xlabel="step", ylabel="paid so far, %")
    group_legend(figure, _names(audit), markers=False)
    return Drawing(
        "when-paid",
        "When in the episode it pays",
        caption="Share of the magnitude of all rewards that has been paid by each step, over all behaviours.",
        alt="; ".join(words) + ".",
        figure=figure,
    )


FIGURES = {"best-of-n": best_of_n, "returns": returns, "when-paid": when_paid}  # in reading order
OF_EXPERIMENTS = {name: partial(_draw_if_audited, draw) for name, draw in FIGURES.items()}
