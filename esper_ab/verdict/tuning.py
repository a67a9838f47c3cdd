"""Each group at its own best: choose a setting per group on some seeds, and judge on different seeds. Pure.

The choice uses outcomes that the judgement never sees. So the judgement compares two fixed groups, whatever was chosen,
and its error rate is that of any plan. Choosing and judging on the same seeds would favour a group whose settings
differ only by luck.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import fsum

import msgspec

from esper_ab.verdict.analysis_plan import AnalysisPlan
from esper_ab.verdict.observation import Observation
from esper_ab.verdict.observations import Observations
from esper_ab.verdict.runs import Runs


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The cell chosen for one group."""

    group: str
    cell: str
    means: dict[str, float]  # by cell, over the seeds that choose


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `tune`: the observations of the chosen settings or, if none can be chosen yet, the missing runs.

    The observations have no task, because their task only named the setting.
    """

    choices: tuple[Choice, ...]  # () while runs are missing
    observations: Observations
    missing: tuple[Observation, ...]  # runs that the choice waits for, without a value
    unused: tuple[Observation, ...]  # runs on judging seeds in settings that were not chosen


def tune(observations: Observations, plan: AnalysisPlan) -> Tuned:
    """For each group, choose the cell with the best mean over the plan's choosing seeds; in a tie, the first cell.

    A lost run counts as the worst outcome of all runs used for the choice.
    """
    runs = observations.rows
    missing_rows = []
    values = {}
    for group, cell, replicate in product(plan.groups, plan.cells, plan.choosing):
        run = runs.find(group, cell, replicate)
        if run is None:
            missing_rows.append(Observation(group=group, task=cell, replicate=replicate, value=None))
        else:
            values[group, cell, replicate] = run.value
    known_values = [value for value in values.values() if value is not None]
    if missing_rows or not known_values:
        empty_observations = msgspec.structs.replace(observations, rows=Runs.of(()))
        return Tuned(choices=(), observations=empty_observations, missing=tuple(missing_rows), unused=())
    worst_outcome = plan.design.outcome.worst(known_values)
    outcomes = {key: worst_outcome if value is None else value for key, value in values.items()}
    choices = tuple(_choice(group, plan, outcomes) for group in plan.groups)
    chosen_cells = {choice.group: choice.cell for choice in choices}
    chosen_rows = []
    unused_rows = []
    for row in observations.rows:
        if row.replicate in plan.choosing:
            continue
        if chosen_cells.get(row.group, row.task) == row.task:
            chosen_rows.append(msgspec.structs.replace(row, task=""))
        else:
            unused_rows.append(row)
    return Tuned(
        choices=choices,
        observations=msgspec.structs.replace(observations, rows=Runs.of(chosen_rows)),
        missing=(),
        unused=tuple(unused_rows),
    )


def _choice(group: str, plan: AnalysisPlan, outcomes: Mapping[tuple[str, str, str], float]) -> Choice:
    means = {}
    for cell in plan.cells:
        values = [outcomes[group, cell, replicate] for replicate in plan.choosing]
        means[cell] = fsum(values) / len(values)
    sign = plan.design.outcome.sign
    best_cell = max(plan.cells, key=lambda cell: sign * means[cell])
    return Choice(group=group, cell=best_cell, means=means)
