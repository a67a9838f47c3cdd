"""Figures of the outcomes: every run as a point, by group and by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from esper_ab.contracts.wording import counted
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import HALF, Drawing, grid, label_axes, name_rows, not_drawn, shortened
from esper_ab.report.figures.runs import drawn_singly, outcome_label, token
from esper_ab.report.kinds import averaged

_MOST_PANELS = 9  # one per comparison; the tables show all


def outcomes(content: Content) -> Drawing | None:
    """Plot one row per group, with a point per run and a bar at the mean. None if there are no outcomes."""
    ends = {
        group: {run.run.replicate: run.outcome for run in content.of_group(group) if run.outcome is not None}
        for group in content.groups
    }
    if not any(ends.values()):
        return None
    design = content.design
    values = {group: list(found.values()) for group, found in ends.items()}
    digits = design.digits - (design.margin >= 1.0)
    part = averaged(content)
    one = f"the mean of {part}" if part else "one trained policy"
    words = (
        f"{group} {design.outcome.value(f'{sum(found) / len(found):.{digits}f}')} ({min(found):.{digits}f} to "
        f"{max(found):.{digits}f}, {counted(len(found), 'run')})"
        for group, found in values.items()
        if found
    )
    return Drawing(
        "outcomes",
        "Every run's outcome",
        caption=f"One point per run: {one}. Bar: mean of the group." + not_drawn(content),
        alt="Mean and range: " + "; ".join(words) + ".",
        figure=_outcome_rows(content, ends),
        wide=False,
    )


def _outcome_rows(content: Content, values: Mapping[str, Mapping[int, float]]) -> Figure:
    figure, (axes,) = grid(1, single=(HALF, 0.75 + 0.5 * len(values)))
    everything = [value for found in values.values() for value in found.values()]
    singly = drawn_singly(content)
    near = max((max(everything) - min(everything)) / (9.5 * HALF), 1e-9)
    for row, found in enumerate(values.values()):
        if not found:
            continue
        middle = sum(found.values()) / len(found)
        found = {replicate: value for replicate, value in found.items() if replicate in singly}
        axes.plot([middle, middle], [row - 0.36, row + 0.36], color=style.INK, linewidth=2.2, solid_capstyle="butt")
        replicates = sorted(found, key=lambda replicate: (found[replicate], replicate))  # the order of `spread`
        for replicate, (value, lift) in zip(replicates, spread(list(found.values()), near), strict=True):
            point = axes.plot(
                [value],
                [row + lift],
                style.marker(row),
                color=style.colour(row),
                markersize=5.5,
                alpha=0.85,
                markeredgecolor=style.CARD,
                markeredgewidth=0.5,
                clip_on=False,
            )
            style.mark(point, token(replicate, row))
    name_rows(axes, [shortened(group, 12) for group in values], above=-0.5, below=0.5)
    axes.set_xlabel(outcome_label(content.design, content.design.outcome.unit))
    return figure


def spread(values: Sequence[float], near: float) -> list[tuple[float, float]]:
    """Return each value, in ascending order, with a lift: a vertical offset that keeps close points apart.

    Points closer than 2 `near` get different lifts where possible, all within ±0.3. The result is deterministic.
    """
    placed: list[tuple[float, float]] = []
    for value in sorted(values):
        taken = {lift for other, lift in placed if abs(other - value) < 2 * near}
        lifts = (sign * step * 0.12 for step in range(3) for sign in (1, -1))
        placed.append((value, next((lift for lift in lifts if lift not in taken), 0.3)))
    return placed


def pairs(content: Content) -> Drawing | None:
    """Plot one panel per comparison, with a line per pair from b to a. None if there are no pairs."""
    shown = [item for item in content.comparisons if item.pairs]
    if not shown:
        return None
    left_out = len(shown) - _MOST_PANELS
    shown = shown[:_MOST_PANELS]
    unpaired = content.experiment.unpaired
    shared = "its runs share no randomness" if unpaired else "the same randomness in both groups"
    figure, panels = grid(len(shown))
    singly = drawn_singly(content)
    for axes, item in zip(panels, shown, strict=True):
        names = item.question.b, item.question.a
        places = [content.groups.index(name) for name in names]
        drawn = [pair for pair in item.pairs if pair.replicate in singly]
        for pair in drawn:
            rises = pair.a >= pair.b
            line = axes.plot(
                [0, 1],
                [pair.b, pair.a],
                color=style.INK if rises else style.MUTED,
                linewidth=1,
                alpha=0.75,
                linestyle="-" if rises else (0, (4, 2)),
                clip_on=False,
            )
            style.mark(line, token(pair.replicate, places[1], places[0]))
        for x, place in enumerate(places):
            look: dict[str, Any] = {"color": style.colour(place), "markersize": 5.5, "clip_on": False}
            for pair in drawn:
                point = axes.plot([x], [(pair.b, pair.a)[x]], style.marker(place), **look)
                style.mark(point, token(pair.replicate, place))
        axes.set(xticks=(0, 1), xticklabels=[shortened(name, 18) for name in names], xlim=(-0.35, 1.35))
        axes.tick_params(axis="x", length=0, labelcolor=style.INK, labelsize=9)
        axes.grid(visible=False, axis="x")
    label_axes(figure, "", outcome_label(content.design, content.design.outcome.unit))
    words = (
        f"{item.question.a} is above {item.question.b} in {sum(pair.a > pair.b for pair in item.pairs)} of "
        f"{len(item.pairs)}"
        for item in shown
    )
    return Drawing(
        "pairs",
        "The pairs behind it",
        caption=f"Each line is one seed: {shared}. Solid: the line does not fall. Broken: it falls."
        + (" Each panel has its own scale." if len(shown) > 1 else "")
        + (f" {left_out} more comparisons are in the tables." if left_out > 0 else "")
        + not_drawn(content),
        alt="Pairs: " + "; ".join(words) + ". Values in the table Outcomes by seed.",
        figure=figure,
        wide=len(shown) > 1,
    )
