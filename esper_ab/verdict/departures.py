"""Which parts of a plan were not followed by runs done elsewhere, and which runs the plan asks for next. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from esper_ab.contracts.wording import counted
from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.cells import Cells
from esper_ab.verdict.looks import PlanProgress
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.scale import MEAN
from esper_ab.verdict.trial_progress import next_trials, trial_departures

_SHOWN = 8  # names in a list


def departures(plan: AnalysisPlan, observations: Observations, progress: PlanProgress) -> Iterator[str]:
    """Yield departures from the plan: unplanned runs, gaps in the order, and runs after everything was decided."""
    if plan.evaluation is not None:
        yield from trial_departures(plan, observations, progress)
        return
    cells = observations.rows.cells
    yield from _unplanned_names(plan, observations)
    yield from _gaps_in_order(plan, observations, cells)
    yield from _unused_runs(plan, cells, progress)


def next_step(plan: AnalysisPlan, observations: Observations, progress: PlanProgress) -> str:
    """Say which runs the next look needs; "" if no look is left."""
    if plan.evaluation is not None:
        return next_trials(plan, observations, progress)
    open_contrasts = [contrast for contrast, comparison in progress.comparisons.items() if not comparison.finished]
    looks = [look for look in plan.design.looks if look > progress.complete]
    if not open_contrasts or not looks:
        return ""
    groups_by_gap: dict[str, list[str]] = {}  # by a list of replicates: the groups, with their tasks, that lack these
    for task, group in product(plan.tasks, plan.groups):
        if any(group in contrast.groups and contrast.task in (task, MEAN) for contrast in open_contrasts):
            wanted_replicates = plan.replicates[: looks[0]]
            lacking_replicates = observations.rows.cells.lacking(group, task, wanted_replicates)
            groups_by_gap.setdefault(listed_short(lacking_replicates), []).append(f"{group}{_task_suffix(task)}")
    runs = "; ".join(
        f"{replicates} of {listed_short(groups)}" for replicates, groups in groups_by_gap.items() if replicates
    )
    return f"The next look is after {looks[0]} seeds: run {runs}."


def _task_suffix(task: str) -> str:
    return f" in {task}" if task else ""


def listed_short(names: Sequence[str]) -> str:
    """Join names; if there are many, show the first names and count the rest."""
    unnamed_count = len(names) - _SHOWN
    if unnamed_count > 0:
        return f"{', '.join(names[:_SHOWN])}, and {unnamed_count} more"
    return ", ".join(names)


def listed_runs(rows: Sequence[Observation]) -> str:
    """Join the names of runs in cells, shortened as by `listed_short`."""
    return listed_short([f"{row.group} at {row.task or '(none)'} with seed {row.replicate}" for row in rows])


def _unplanned_names(plan: AnalysisPlan, observations: Observations) -> Iterator[str]:
    """Yield a line per kind of name (group, task, replicate) with names outside the plan.

    Rows with them are ignored.
    """
    for kind, column, planned_names in (
        ("group", observations.rows.group, plan.groups),
        ("task", observations.rows.task, plan.tasks),
        (observations.pair_column, observations.rows.replicate, plan.replicates),
    ):
        known_names = frozenset(planned_names)
        ignored_names = [name for name in column.names if name not in known_names]
        if ignored_names:
            names = listed_short([name or "(none)" for name in ignored_names])
            rows = int(column.among(ignored_names).sum())
            yield f"Not in the plan, so ignored: {kind} {names} ({counted(rows, 'row')})."


def _gaps_in_order(plan: AnalysisPlan, observations: Observations, cells: Cells) -> Iterator[str]:
    """Yield the runs that are missing although later runs of their group exist."""
    for task in plan.tasks:
        for group in plan.groups:
            finished_indices = np.flatnonzero(cells.rows_of(group, task, plan.replicates) >= 0)
            last_done = int(finished_indices.max(initial=0))
            missing_replicates = cells.lacking(group, task, plan.replicates[:last_done])
            if missing_replicates:
                yield (
                    f"Out of order: {group}{_task_suffix(task)} has no run of {observations.pair_column} "
                    f"{listed_short(missing_replicates)} but has later ones. Runs after a gap do not count; enter a "
                    "failed run as "
                    "a row with an empty outcome."
                )


def _unused_runs(plan: AnalysisPlan, cells: Cells, progress: PlanProgress) -> Iterator[str]:
    """Yield the runs that were done after all their comparisons had been decided."""
    if not plan.design.early_stop:
        return
    for task in plan.tasks:
        for group in plan.groups:
            group_comparisons = [
                comparison
                for contrast, comparison in progress.comparisons.items()
                if group in contrast.groups and contrast.task in (task, MEAN)
            ]
            if not group_comparisons or any(comparison.decided_at is None for comparison in group_comparisons):
                continue
            end = max(comparison.decided_at or 0 for comparison in group_comparisons)
            after = plan.replicates[end:]
            exists = cells.rows_of(group, task, after) >= 0
            later_replicates = [name for name, run_exists in zip(after, exists.tolist(), strict=True) if run_exists]
            if later_replicates:
                yield (
                    f"Not used: {group}{_task_suffix(task)} has runs beyond its first {end} seeds, at which all its "
                    f"comparisons had been decided ({listed_short(later_replicates)})."
                )
