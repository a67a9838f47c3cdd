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
    missing = []
    values = {}
    for group, cell, replicate in product(plan.groups, plan.cells, plan.choosing):
        run = runs.find(group, cell, replicate)
        if run is None:
            missing.append(Observation(group=group, task=cell, replicate=replicate, value=None))
        else:
            values[group, cell, replicate] = run.value
    known = [value for value in values.values() if value is not None]
    if missing or not known:
        nothing = msgspec.structs.replace(observations, rows=Runs.of(()))
        return Tuned(choices=(), observations=nothing, missing=tuple(missing), unused=())
    worst = plan.design.outcome.worst(known)
    outcomes = {key: worst if value is None else value for key, value in values.items()}
    choices = tuple(_choice(group, plan, outcomes) for group in plan.groups)
    chosen = {choice.group: choice.cell for choice in choices}
    chosen_rows = []
    unused = []
    for row in observations.rows:
        if row.replicate in plan.choosing:
            continue
        if chosen.get(row.group, row.task) == row.task:
            chosen_rows.append(msgspec.structs.replace(row, task=""))
        else:
            unused.append(row)
    return Tuned(
        choices=choices,
        observations=msgspec.structs.replace(observations, rows=Runs.of(chosen_rows)),
        missing=(),
        unused=tuple(unused),
    )


def _choice(group: str, plan: AnalysisPlan, outcomes: Mapping[tuple[str, str, str], float]) -> Choice:
    means = {}
    for cell in plan.cells:
        values = [outcomes[group, cell, replicate] for replicate in plan.choosing]
        means[cell] = fsum(values) / len(values)
    sign = plan.design.outcome.sign
    best = max(plan.cells, key=lambda cell: sign * means[cell])
    return Choice(group=group, cell=best, means=means)
