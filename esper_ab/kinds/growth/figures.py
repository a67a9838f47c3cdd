"""Figures of growth: accuracy against parameters, the controllers' operations, and the life of seed modules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import methodcaller
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.fold import RunHistory
from esper_ab.journal.outcomes import mean
from esper_ab.report.content import Content
from esper_ab.report.figures import style
from esper_ab.report.figures.curves import Words, panels
from esper_ab.report.figures.drawing import Drawing, grid, group_legend, label_axes, shortened
from esper_ab.report.figures.kind import BySection, FiguresKind
from esper_ab.report.figures.runs import drawn_singly, not_drawn, outcome_label, token

# Bands from the bottom up: permanent seeds, live seeds, removed seeds. (label, shade, hatch, stages)
_BANDS: tuple[tuple[str, int, str, tuple[str, ...]], ...] = (
    ("fossilised", 5, "", ("FOSSILIZED",)),
    ("holding", 4, "", ("HOLDING",)),
    ("blending", 3, "", ("BLENDING",)),
    ("training", 2, "", ("TRAINING",)),
    ("germinated", 1, "", ("GERMINATED",)),
    ("cooling down after a prune", 0, "////", ("PRUNED", "EMBARGOED", "RESETTING")),
)
_BAND_BY_STAGE = {stage: row for row, band in enumerate(_BANDS) for stage in band[3]}
_MOST_EPISODES = 5000  # sampled per group, because their records are read one by one
_MOST_STEPS = 200  # columns of a panel; longer episodes are sampled
OPS = {  # operation -> its measure
    "wait": "op_wait",
    "germinate": "op_germinate",
    "set alpha target": "op_set_alpha_target",
    "prune": "op_prune",
    "fossilise": "op_fossilize",
    "advance": "op_advance",
}
Shares = list[list[float]]  # [band][step], percent of slots


def lifecycle(content: Content) -> Drawing | None:
    """Plot the share of slots per stage after each step, over training's second half. None if there are no events."""
    history = content.history
    experiment = history.plan.experiment
    if not experiment.telemetry:  # avoids reading thousands of records that have no events
        return None
    stride = -(-experiment.steps // _MOST_STEPS)
    steps = list(range(1, experiment.steps + 1, stride))
    by_group = {group: shares(history.of_group(group), experiment.slots, steps) for group in content.groups}
    drawn_groups = {group: bands for group, bands in by_group.items() if any(map(any, bands))}
    if not drawn_groups:
        return None
    figure, panels = grid(len(drawn_groups), sharey=True, single_size=(9.4, 3.0))
    for axes, (group, bands) in zip(panels, drawn_groups.items(), strict=True):
        _stack(axes, steps, bands)
        axes.set_title(shortened(group))
    label_axes(figure, "step", "slots, %")
    _stage_legend(figure, columns=3 if len(drawn_groups) == 1 else 6)
    caption = (
        "Share of all slots in each stage after each step, mean over hosts of the second half of every run's "
        "training episodes. Blank: empty. The stronger the shade, the later the stage; fossilised modules stay."
    )
    if any(_stride(history.of_group(group)) > 1 for group in history.groups):
        caption += f" Only up to {_MOST_EPISODES:,} evenly spaced episodes of a group."
    silent_groups = [group for group in content.groups if group not in drawn_groups]
    if silent_groups:
        caption += f" None in: {', '.join(silent_groups)}."
    last_words = [_last(group, bands) for group, bands in drawn_groups.items()]
    return Drawing(
        "lifecycle",
        "Life of the seed modules",
        caption=caption,
        alt="After the last step: " + "; ".join(last_words) + ".",
        figure=figure,
    )


def _stage_legend(figure: Figure, columns: int) -> None:
    handles = [
        Patch(facecolor=style.STAGES[shade], edgecolor=style.MUTED, linewidth=0.5, hatch=hatch, label=word)
        for word, shade, hatch, _ in _BANDS
    ]
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=columns,
        borderaxespad=0.2,
        handlelength=1.6,
        columnspacing=1.1,
    )


def _last(group: str, bands: Shares) -> str:
    """Describe the shares of a group after the last step."""
    words = []
    for (label, *_), band in zip(_BANDS, bands, strict=True):
        if any(band):
            words.append(f"{band[-1]:.0f} % {label}")
    return f"{group}: " + ", ".join(words)


def _stack(axes: Axes, steps: Sequence[int], bands: Shares) -> None:
    for (_, shade, hatch, _), band, top in zip(_BANDS, bands, np.cumsum(bands, axis=0), strict=True):
        if any(band):
            axes.fill_between(
                steps,
                top - band,
                top,
                step="mid",
                facecolor=style.STAGES[shade],
                edgecolor=style.MUTED,
                linewidth=0.4,
                hatch=hatch,
            )
    axes.set(ylim=(0, 100), xlim=(steps[0], max(steps[-1], steps[0] + 1)))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))


def shares(runs: Sequence[RunHistory], slots: Sequence[str], steps: Sequence[int]) -> Shares:
    """Return the percentage of slots in each of _BANDS after each of `steps`, as [band][step].

    100 % is all slots of all hosts in the episodes that `chosen` selects. Returns [] if there are no records.
    """
    counts = [[0] * len(steps) for _ in _BANDS]
    slot_count = 0
    for run, episodes in chosen(runs):
        for episode in episodes:
            record = run.episodes[episode]
            slot_count += len(record.envs) * len(slots)
            _count(record, steps, counts)
    if slot_count:
        return [[100 * count / slot_count for count in row] for row in counts]
    return []


def chosen(runs: Sequence[RunHistory]) -> list[tuple[RunHistory, Sequence[int]]]:
    """Return the second half of every run's episodes; if these exceed _MOST_EPISODES, return an even sample of them."""
    stride = _stride(runs)
    return [(run, run.columns.episodes[len(run.columns) // 2 :: stride]) for run in runs]


def _stride(runs: Sequence[RunHistory]) -> int:
    episodes = sum((len(run.columns) + 1) // 2 for run in runs)
    return max(1, -(-episodes // _MOST_EPISODES))


def _count(record: EpisodeRecord, steps: Sequence[int], counts: list[list[int]]) -> None:
    """Add one record's slots to `counts` [band][step]: an event applies until the next event in its slot."""
    lives: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for event in record.seed_events:
        lives.setdefault((event.env, event.slot), []).append((event.step, event.stage))
    for life in lives.values():
        life.sort(key=lambda change: change[0])  # stable: several changes of one step keep their order
        event_steps = [step for step, _ in life]
        for column, step in enumerate(steps):
            changes = bisect_right(event_steps, step)
            if changes:
                _, stage = life[changes - 1]
                band = _BAND_BY_STAGE.get(stage)
                if band is not None:
                    counts[band][column] += 1


def actions(content: Content) -> Drawing | None:
    """Plot executed operations per host and episode, one panel per operation. None if there are no episodes."""
    words = Words(
        "actions",
        "What the controllers do",
        label="per host and episode",
        caption="Executed operations per host in each training episode, mean over runs. Each panel has its own scale.",
    )
    operations = {name: methodcaller("measure", measure) for name, measure in OPS.items()}
    return panels(content, words, operations)


def cost(content: Content) -> Drawing | None:
    """Plot added parameters against accuracy: a point per run, a large one per group. None if there are no outcomes."""
    drawn_groups: list[tuple[int, str]] = []
    words = []
    single_replicates = drawn_singly(content)
    figure, (axes,) = grid(1)
    for index, group in enumerate(content.groups):
        look: dict[str, Any] = {"color": style.colour(index), "clip_on": False}
        all_added_params = []
        outcomes = []
        for run in content.of_group(group):
            added_params = run.measures["params_added"]
            if added_params is None or run.outcome is None:
                continue
            all_added_params.append(added_params)
            outcomes.append(run.outcome)
            if run.run.replicate in single_replicates:
                point = axes.plot([added_params], [run.outcome], style.marker(index), markersize=4.5, alpha=0.7, **look)
                style.mark(point, token(run.run.replicate, index))
        if not outcomes:
            continue
        drawn_groups.append((index, group))
        x = mean(all_added_params) or 0.0
        y = mean(outcomes) or 0.0
        middle = axes.plot(
            x, y, style.marker(index), markersize=10, markerfacecolor="none", markeredgewidth=1.8, **look
        )
        style.mark(middle, token(None, index))
        words.append(f"{group}: {x:,.0f} parameters, {y:.1f} %")
    if not drawn_groups:
        return None
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.set(
        xlim=(0, 1.1 * max(axes.dataLim.xmax, 1.0)),
        xlabel="parameters added per host",
        ylabel=outcome_label(content.design, content.design.outcome.unit),
    )
    group_legend(figure, drawn_groups, markers=True)
    return Drawing(
        "cost",
        "Cost against accuracy",
        caption="Small: one run. Large: mean of the group. Further up is better, further left is cheaper."
        + not_drawn(content),
        alt="Means: " + "; ".join(words) + ".",
        figure=figure,
        wide=False,
    )


class GrowthFigures(FiguresKind):
    """Figures of growth."""

    by_section: ClassVar[BySection] = {
        "groups": {"cost": cost},
        "training": {"actions": actions, "lifecycle": lifecycle},
    }


KIND = GrowthFigures()
