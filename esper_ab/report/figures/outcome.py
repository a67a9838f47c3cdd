"""Figures of the outcomes: every run as a point, by group and by pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esper_ab.contracts.wording import counted
from esper_ab.design.design import Design
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.drawing import HALF, Drawing, grid, label_axes, name_rows, shortened
from esper_ab.report.figures.runs import drawn_singly, not_drawn, outcome_label, token
from esper_ab.report.kind import averaged
from esper_ab.verdict.comparison import Comparison

_MOST_PANELS = 9  # one per comparison; the tables show all
_LIFTS = (0.0, 0.12, -0.12, 0.24, -0.24)
_LAST_LIFT = 0.3  # of all points for which none of these is free


def outcomes(content: Content) -> Drawing | None:
    """Plot one row per group, with a point per run and a bar at the mean. None if there are no outcomes."""
    outcomes = {group: _known_outcomes(content, group) for group in content.groups}
    if not any(outcomes.values()):
        return None
    part = averaged(content)
    point = f"the mean of {part}" if part else "one trained policy"
    words = [
        _mean_and_range(content.design, group, list(by_replicate.values()))
        for group, by_replicate in outcomes.items()
        if by_replicate
    ]
    return Drawing(
        "outcomes",
        "Every run's outcome",
        caption=f"One point per run: {point}. Bar: mean of the group." + not_drawn(content),
        alt="Mean and range: " + "; ".join(words) + ".",
        figure=_outcome_rows(content, outcomes),
        wide=False,
    )


def _known_outcomes(content: Content, group: str) -> dict[int, float]:
    """Return the outcomes of a group by replicate, without runs that have none."""
    return {run.run.replicate: run.outcome for run in content.of_group(group) if run.outcome is not None}


def _mean_and_range(design: Design, group: str, values: Sequence[float]) -> str:
    digits = design.digits - 1 if design.margin >= 1.0 else design.digits
    mean = design.outcome.value(f"{sum(values) / len(values):.{digits}f}")
    extent = f"{min(values):.{digits}f} to {max(values):.{digits}f}"
    return f"{group} {mean} ({extent}, {counted(len(values), 'run')})"


def _outcome_rows(content: Content, outcomes: Mapping[str, Mapping[int, float]]) -> Figure:
    figure, (axes,) = grid(1, single_size=(HALF, 0.75 + 0.5 * len(outcomes)))
    all_outcomes = [value for by_replicate in outcomes.values() for value in by_replicate.values()]
    single_replicates = drawn_singly(content)
    near_distance = max((max(all_outcomes) - min(all_outcomes)) / (9.5 * HALF), 1e-9)
    for row, by_replicate in enumerate(outcomes.values()):
        if not by_replicate:
            continue
        middle = sum(by_replicate.values()) / len(by_replicate)
        axes.plot([middle, middle], [row - 0.36, row + 0.36], color=style.INK, linewidth=2.2, solid_capstyle="butt")
        drawn_outcomes = sorted(
            (value, replicate) for replicate, value in by_replicate.items() if replicate in single_replicates
        )
        points = spread([value for value, _ in drawn_outcomes], near_distance)
        for (value, lift), (_, replicate) in zip(points, drawn_outcomes, strict=True):
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
    name_rows(axes, [shortened(group, 12) for group in outcomes], top=-0.5, bottom=0.5)
    axes.set_xlabel(outcome_label(content.design, content.design.outcome.unit))
    return figure


def spread(values: Sequence[float], near_distance: float) -> list[tuple[float, float]]:
    """Return each value, in ascending order, with a lift: a vertical offset that keeps close points apart.

    Points closer than 2 `near_distance` get different lifts where possible, all within ±0.3. The result is
    deterministic.
    """
    placed_points: list[tuple[float, float]] = []
    for value in sorted(values):
        taken_lifts = {lift for other_value, lift in placed_points if abs(other_value - value) < 2 * near_distance}
        free_lifts = [lift for lift in _LIFTS if lift not in taken_lifts]
        lift = _LAST_LIFT
        if free_lifts:
            lift = free_lifts[0]
        placed_points.append((value, lift))
    return placed_points


def pairs(content: Content) -> Drawing | None:
    """Plot one panel per comparison, with a line per pair from b to a. None if there are no pairs."""
    paired_items = [item for item in content.comparisons if item.pairs]
    if not paired_items:
        return None
    omitted_count = len(paired_items) - _MOST_PANELS
    paired_items = paired_items[:_MOST_PANELS]
    figure, panels = grid(len(paired_items))
    words = []
    for axes, item in zip(panels, paired_items, strict=True):
        _pair_panel(axes, item, content)
        pairs_above = sum(pair.a > pair.b for pair in item.pairs)
        words.append(f"{item.question.a} is above {item.question.b} in {pairs_above} of {len(item.pairs)}")
    label_axes(figure, "", outcome_label(content.design, content.design.outcome.unit))
    if content.experiment.unpaired:
        randomness_words = "its runs share no randomness"
    else:
        randomness_words = "the same randomness in both groups"
    caption = f"Each line is one seed: {randomness_words}. Solid: the line does not fall. Broken: it falls."
    if len(paired_items) > 1:
        caption += " Each panel has its own scale."
    if omitted_count > 0:
        caption += f" {omitted_count} more comparisons are in the tables."
    return Drawing(
        "pairs",
        "The pairs behind it",
        caption=caption + not_drawn(content),
        alt="Pairs: " + "; ".join(words) + ". Values in the table Outcomes by seed.",
        figure=figure,
        wide=len(paired_items) > 1,
    )


def _pair_panel(axes: Axes, item: Comparison, content: Content) -> None:
    """Plot the pairs of one comparison: b on the left, a on the right."""
    single_replicates = drawn_singly(content)
    pairs = [pair for pair in item.pairs if pair.replicate in single_replicates]
    index_a = content.groups.index(item.question.a)
    index_b = content.groups.index(item.question.b)
    for pair in pairs:
        if pair.a >= pair.b:
            look: dict[str, Any] = {"color": style.INK, "linestyle": "-"}
        else:
            look = {"color": style.MUTED, "linestyle": (0, (4, 2))}
        line = axes.plot([0, 1], [pair.b, pair.a], linewidth=1, alpha=0.75, clip_on=False, **look)
        style.mark(line, token(pair.replicate, index_a, index_b))
    for pair in pairs:
        _end_of_pair(axes, 0, pair.b, pair.replicate, index_b)
    for pair in pairs:
        _end_of_pair(axes, 1, pair.a, pair.replicate, index_a)
    names = [shortened(name, 18) for name in (item.question.b, item.question.a)]
    axes.set(xticks=(0, 1), xticklabels=names, xlim=(-0.35, 1.35))
    axes.tick_params(axis="x", length=0, labelcolor=style.INK, labelsize=9)
    axes.grid(visible=False, axis="x")


def _end_of_pair(axes: Axes, x: int, outcome: float, replicate: int, group: int) -> None:
    colour = style.colour(group)
    point = axes.plot([x], [outcome], style.marker(group), color=colour, markersize=5.5, clip_on=False)
    style.mark(point, token(replicate, group))
