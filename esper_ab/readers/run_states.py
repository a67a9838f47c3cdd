"""The state that a tracker's table of runs gives for each run: an outcome of a crashed run is no result. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.verdict.item_table import ItemTable
from esper_ab.verdict.observations import Observation

_COLUMNS = ("state", "status")  # names of the column, in lower case
_DONE = frozenset({"finished", "completed", "complete", "success", "succeeded", "done"})
_LOST = frozenset({"crashed", "failed", "killed", "preempted", "aborted", "cancelled", "canceled", "error", "timeout"})
_RUNNING = frozenset({"running", "pending", "queued", "scheduled", "preempting", "starting"})


@dataclass(frozen=True)
class _States:
    """A column of states of runs."""

    name: str
    of_rows: list[str]


def without_crashed(
    source: str, columns: Mapping[str, Sequence[object]], used: Collection[str], rows: Sequence[Observation]
) -> tuple[list[Observation], tuple[str, ...]]:
    """Return the rows, in which crashed runs are lost, and a note that says so; unchanged without a column of states.

    A column has states if it is called "state" or "status", is not among the `used` ones, and has nothing but words for
    states of runs. Raises UsageError if a run has not ended.
    """
    states = _states(columns, used)
    if states is None:
        return list(rows), ()
    _refuse_running(source, states, [row.row for row in rows])
    kept = list[Observation]()
    lost = list[Observation]()
    for row, state in zip(rows, states.of_rows, strict=True):
        if state in _LOST:
            lost.append(row)
            kept.append(msgspec.structs.replace(row, value=None))
        else:
            kept.append(row)
    if all(row.value is None for row in lost):
        return kept, ()
    return kept, (_note(states, [row.group for row in lost]),)


def without_crashed_items(
    source: str,
    columns: Mapping[str, Sequence[object]],
    used: Collection[str],
    table: ItemTable,
    row_numbers: Sequence[int],
) -> tuple[ItemTable, tuple[str, ...]]:
    """Return the table of items, in which crashed runs have no scores, and a note that says so.

    A state that differs between the rows of a run is not one of the run, but of its items, such as a rollout that
    failed; neither is a state if no column names runs. The table is then unchanged. Raises UsageError if a run has not
    ended.
    """
    states = _states(columns, used)
    if states is None or table.runs == ("",):
        return table, ()
    run = table.group * len(table.runs) + table.run
    distinct, state = np.unique(states.of_rows, return_inverse=True)
    runs, first, of_row = np.unique(run, return_index=True, return_inverse=True)
    if not np.array_equal(state, state[first][of_row]):
        return table, ()
    _refuse_running(source, states, row_numbers)
    crashed = np.isin(distinct, list(_LOST))[state]
    if not np.isfinite(table.score[crashed]).any():
        return table, ()
    lost_runs = runs[np.isin(runs, run[crashed])]
    groups = [table.groups[number // len(table.runs)] for number in lost_runs]
    return replace(table, score=np.where(crashed, np.nan, table.score)), (_note(states, groups),)


def _states(columns: Mapping[str, Sequence[object]], used: Collection[str]) -> _States | None:
    name = next((name for name in columns if name.strip().lower() in _COLUMNS and name not in used), "")
    states = [str(cell).strip().lower() for cell in columns.get(name, ())]
    if not states or not {*states} <= _DONE | _LOST | _RUNNING:
        return None
    return _States(name, states)


def _refuse_running(source: str, states: _States, row_numbers: Sequence[int]) -> None:
    for number, state in zip(row_numbers, states.of_rows, strict=True):
        if state in _RUNNING:
            raise UsageError(
                f"{source}, row {number}, column {states.name}: the run is {state}, so its outcome is not final; "
                "remove the row, or export the table again when the run has ended"
            )


def _note(states: _States, groups_of_lost: Sequence[str]) -> str:
    counts = Counter(groups_of_lost)
    groups = ", ".join(f"{counted(count, 'run')} of {visible_line(group)}" for group, count in counts.items())
    return (
        f"Lost, because the column {states.name} says that they did not finish, whatever outcome they reached: "
        f"{groups}."
    )
