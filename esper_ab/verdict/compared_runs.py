"""The runs of one group of a comparison, in every replicate of an order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from esper_ab.stats.floats import Bools, Floats, Ints
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import MEAN, Scale


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedRuns:
    """The run of a group or, for the mean over tasks, one run per task, in each replicate; all [replicates]."""

    exist: Bools  # all of these runs or, if some may be missing, those beside a failed one
    failed: Bools  # one of them failed; False where none exists
    value: Floats  # the outcome; NaN: one was lost or is missing
    position: Ints  # of the first run; -1: not known
    rows: Ints  # [tasks, replicates]; -1: no run


def compared_runs(
    runs: Runs, group: str, task: str, scales: Sequence[Scale], replicates: Sequence[str], *, partial: bool = False
) -> ComparedRuns:
    """Return the runs of `group` in `task` in each replicate. `scales`: of all tasks, which the mean covers.

    Runs exist if there is one in each task. If `partial`, they also exist if one of them failed: the mean is lost
    without the others.
    """
    rows = np.stack([runs.cells.rows_of(group, name, replicates) for name in covered_tasks(task, scales)])
    present_mask = rows >= 0
    values = np.full(rows.shape, np.nan)
    values[present_mask] = runs.value[rows[present_mask]]
    failed_mask = np.zeros(rows.shape, dtype=np.bool_)
    failed_mask[present_mask] = np.isnan(values[present_mask]) & ~runs.cancelled[rows[present_mask]]
    any_failed = np.asarray(failed_mask.any(axis=0), dtype=np.bool_)
    exist = np.asarray(present_mask.all(axis=0), dtype=np.bool_)
    if partial:
        exist = exist | any_failed
    return ComparedRuns(
        exist=exist,
        failed=exist & any_failed,
        value=values[0] if task != MEAN else _means(values, scales),
        position=_first_positions(runs, rows),
        rows=rows,
    )


def covered_tasks(task: str, scales: Sequence[Scale]) -> list[str]:
    """Return the tasks that a contrast in `task` covers: all of them if it is the mean."""
    if task == MEAN:
        return [scale.task for scale in scales]
    return [task]


def _means(values: Floats, scales: Sequence[Scale]) -> Floats:
    """Return the mean [replicates] of `values` [tasks, replicates] in units of their margins; higher is better."""
    scaled_values = [
        scale.outcome.sign * task_values / scale.margin for scale, task_values in zip(scales, values, strict=True)
    ]
    return np.array([fsum(outcomes) for outcomes in zip(*scaled_values, strict=True)], dtype=np.float64) / len(
        scaled_values
    )


def _first_positions(runs: Runs, rows: Ints) -> Ints:
    """Return the position [replicates] of the first run in the order of tasks; -1 if it is not known."""
    first_rows = np.take_along_axis(rows, np.argmax(rows >= 0, axis=0)[None], axis=0)[0]
    positions = np.full(first_rows.size, -1)
    positions[first_rows >= 0] = runs.place[first_rows[first_rows >= 0]]
    return positions
