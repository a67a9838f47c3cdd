"""The state that a tracker's table of runs gives for each run: an outcome of a crashed run is no result. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.readers.cell_columns import CellColumns
from esper_ab.stats.floats import Ints
from esper_ab.verdict.item_table import ItemTable
from esper_ab.verdict.names import Names
from esper_ab.verdict.runs import Runs

_COLUMNS = ("state", "status")  # names of the column, in lower case
_DONE = frozenset({"finished", "completed", "complete", "success", "succeeded", "done"})
_LOST = frozenset({"crashed", "failed", "killed", "preempted", "aborted", "cancelled", "canceled", "error", "timeout"})
_RUNNING = frozenset({"running", "pending", "queued", "scheduled", "preempting", "starting"})


@dataclass(frozen=True)
class _States:
    """A column of states of runs."""

    name: str
    of_rows: Names


def without_crashed(
    source: str, columns: CellColumns, used_columns: Collection[str], runs: Runs
) -> tuple[Runs, tuple[str, ...]]:
    """Return the runs, in which crashed runs are lost, and a note that says so; unchanged without a column of states.

    A column has states if it is called "state" or "status", is not among the `used_columns` ones, and has nothing but
    words for states of runs. Raises UsageError if a run has not ended.
    """
    states = _states(columns, used_columns)
    if states is None:
        return runs, ()
    _refuse_running(source, states, runs.row)
    crashed = states.of_rows.among(_LOST)
    remaining_runs = replace(runs, value=np.where(crashed, np.nan, runs.value))
    if runs.lost[crashed].all():
        return remaining_runs, ()
    return remaining_runs, (_note(states, runs.group.of_rows(np.flatnonzero(crashed))),)


def without_crashed_items(
    source: str, columns: CellColumns, used_columns: Collection[str], table: ItemTable, row_numbers: Sequence[int]
) -> tuple[ItemTable, tuple[str, ...]]:
    """Return the table of items, in which crashed runs have no scores, and a note that says so.

    A state that differs between the rows of a run is not one of the run, but of its items, such as a rollout that
    failed; neither is a state if no column names runs. The table is then unchanged. Raises UsageError if a run has not
    ended.
    """
    states = _states(columns, used_columns)
    if states is None or table.runs == ("",):
        return table, ()
    run = table.group * len(table.runs) + table.run
    state = states.of_rows.codes
    runs, first_rows, run_of_row = np.unique(run, return_index=True, return_inverse=True)
    if not np.array_equal(state, state[first_rows][run_of_row]):
        return table, ()
    _refuse_running(source, states, row_numbers)
    crashed = states.of_rows.among(_LOST)
    if not np.isfinite(table.score[crashed]).any():
        return table, ()
    lost_runs = runs[np.isin(runs, run[crashed])]
    groups = [table.groups[number // len(table.runs)] for number in lost_runs]
    return replace(table, score=np.where(crashed, np.nan, table.score)), (_note(states, groups),)


def _states(columns: CellColumns, used_columns: Collection[str]) -> _States | None:
    name = next((name for name in columns if name.strip().lower() in _COLUMNS and name not in used_columns), "")
    if name not in columns:
        return None
    states = columns.distinct(name).names(lambda cell, _: str(cell).strip().lower())
    if not {*states.names} <= _DONE | _LOST | _RUNNING:
        return None
    return _States(name, states)


def _refuse_running(source: str, states: _States, row_numbers: Sequence[int] | Ints) -> None:
    running_rows = np.flatnonzero(states.of_rows.among(_RUNNING))
    if running_rows.size:
        row = int(running_rows[0])
        raise UsageError(
            f"{source}, row {row_numbers[row]}, column {states.name}: the run is {states.of_rows[row]}, so its outcome "
            "is not final; remove the row, or export the table again when the run has ended"
        )


def _note(states: _States, groups_of_lost: Sequence[str]) -> str:
    counts = Counter(groups_of_lost)
    groups = ", ".join(f"{counted(count, 'run')} of {visible_line(group)}" for group, count in counts.items())
    return (
        f"Lost, because the column {states.name} says that they did not finish, whatever outcome they reached: "
        f"{groups}."
    )
