"""The state that a tracker's table of runs gives for each run: an outcome of a crashed run is no result. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted
from esper_ab.verdict.observations import Observation

_COLUMNS = ("state", "status")  # names of the column, in lower case
_DONE = frozenset({"finished", "completed", "complete", "success", "succeeded", "done"})
_LOST = frozenset({"crashed", "failed", "killed", "preempted", "aborted", "cancelled", "canceled", "error", "timeout"})
_RUNNING = frozenset({"running", "pending", "queued", "scheduled", "preempting", "starting"})


def without_crashed(
    source: str, columns: Mapping[str, Sequence[object]], used: Collection[str], rows: Sequence[Observation]
) -> tuple[list[Observation], tuple[str, ...]]:
    """Return the rows, in which crashed runs are lost, and a note that says so; unchanged without a column of states.

    A column has states if it is called "state" or "status", is not among the `used` ones, and has nothing but words for
    states of runs. Raises UsageError if a run has not ended.
    """
    name = next((name for name in columns if name.strip().lower() in _COLUMNS and name not in used), "")
    states = [str(cell).strip().lower() for cell in columns.get(name, ())]
    if not states or not {*states} <= _DONE | _LOST | _RUNNING:
        return list(rows), ()
    kept = list[Observation]()
    lost = list[Observation]()
    for row, state in zip(rows, states, strict=True):
        if state in _RUNNING:
            raise UsageError(
                f"{source}, row {row.row}, column {name}: the run is {state}, so its outcome is not final; remove the "
                "row, or export the table again when the run has ended"
            )
        if state in _LOST:
            lost.append(row)
            kept.append(msgspec.structs.replace(row, value=None))
        else:
            kept.append(row)
    if all(row.value is None for row in lost):
        return kept, ()
    return kept, (_note(name, lost),)


def _note(name: str, lost: Sequence[Observation]) -> str:
    counts = Counter(row.group for row in lost)
    groups = ", ".join(f"{counted(count, 'run')} of {visible_line(group)}" for group, count in counts.items())
    return f"Lost, because the column {name} says that they did not finish, whatever outcome they reached: {groups}."
