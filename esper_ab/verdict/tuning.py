"""Each group at its own best: choose a setting per group on some seeds, and judge on different seeds. Pure.

The choice uses outcomes that the judgement never sees. So the judgement compares two fixed groups, whatever was chosen,
and its error rate is that of any plan. Choosing and judging on the same seeds would favour a group whose settings
differ only by luck.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum

import msgspec

from esper_ab.verdict.observations import Observation, Observations
from esper_ab.verdict.vocabulary import Scale


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The cell chosen for one group."""

    group: str
    cell: str
    means: dict[str, float]  # by cell, over the seeds that choose


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """Observations of the chosen settings, without a task, or the runs still missing for a choice."""

    choices: tuple[Choice, ...]  # () while runs are missing
    observations: Observations
    missing: tuple[Observation, ...]  # runs that the choice waits for, without a value
    unused: tuple[Observation, ...]  # runs on judging seeds in settings that were not chosen


def tune(
    observations: Observations, groups: Sequence[str], cells: Sequence[str], choosing: Sequence[str], scale: Scale
) -> Tuned:
    """For each group, choose the cell with the best mean over the seeds in `choosing`; in a tie, choose the first cell.

    A lost run counts as the worst outcome of all runs used for the choice.
    """
    runs = {(row.group, row.task, row.replicate): row for row in observations.rows}
    wanted = [(group, cell, seed) for group in groups for cell in cells for seed in choosing]
    missing = tuple(
        Observation(group=group, task=cell, replicate=seed, value=None)
        for group, cell, seed in wanted if (group, cell, seed) not in runs
    )  # fmt: skip
    values = {key: runs[key].value for key in wanted if key in runs}
    known = [value for value in values.values() if value is not None]
    if missing or not known:
        nothing = msgspec.structs.replace(observations, rows=())
        return Tuned(choices=(), observations=nothing, missing=missing, unused=())
    worst = scale.outcome.worst(known)
    ends = {key: worst if value is None else value for key, value in values.items()}
    choices = tuple(_choice(group, cells, choosing, ends, scale) for group in groups)
    chosen = {one.group: one.cell for one in choices}
    judged = [row for row in observations.rows if row.replicate not in choosing]
    kept = tuple(
        msgspec.structs.replace(row, task="") for row in judged if chosen.get(row.group, row.task) == row.task
    )
    return Tuned(
        choices=choices, observations=msgspec.structs.replace(observations, rows=kept), missing=(),
        unused=tuple(row for row in judged if chosen.get(row.group, row.task) != row.task),
    )  # fmt: skip


def _choice(
    group: str, cells: Sequence[str], choosing: Sequence[str], ends: Mapping[tuple[str, str, str], float], scale: Scale
) -> Choice:
    means = {cell: fsum(ends[group, cell, seed] for seed in choosing) / len(choosing) for cell in cells}
    best = max(cells, key=lambda cell: scale.outcome.sign * means[cell])
    return Choice(group=group, cell=best, means=means)
