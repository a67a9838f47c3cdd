"""`results_TIME.json` of lm-evaluation-harness: the scores of one checkpoint, a number per task and metric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._json import read_json
from esper_ab.formats.known._records import columns_of
from esper_ab.formats.source_table import SourceTable

_NAME = "a results file of lm-evaluation-harness"
_TASK = "task"
_ERROR = "_stderr"
_NO_METRICS = ("sample_len", "sample_count")


def _recognises(file: Path, head: bytes) -> bool:
    """The first key is "results": a mapping of tasks, whose metrics are followed by a comma and a filter."""
    start = head.lstrip()[:200].replace(b" ", b"").replace(b"\n", b"")
    return start.startswith(b'{"results":{') and (b"_stderr," in head or b',none"' in head)


def _read(file: Path) -> list[SourceTable]:
    document = read_json(file)
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, dict) or not all(isinstance(cells, dict) for cells in results.values()):
        raise UsageError(f"{file}, {_NAME}: no results by task")
    subtasks = document.get("group_subtasks")  # a group's number is made of those of its tasks
    groups = {name for name, tasks in subtasks.items() if tasks} if isinstance(subtasks, dict) else set()
    rows = [{_TASK: task} | _metrics(cells) for task, cells in results.items() if task not in groups]
    columns = columns_of(f"{file}, {_NAME}", rows)
    outcomes = tuple(name for name in columns if name != _TASK)
    if not outcomes:
        raise UsageError(f"{file}, {_NAME}: no metric has a number")
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=columns,
            row_numbers=range(1, len(rows) + 1),
            roles={"task": _TASK},
            outcomes=outcomes,
            better=_better(document.get("higher_is_better"), outcomes[0].partition(",")[0]),
            notes=("Scores of whole tasks; samples_*.jsonl, which --log_samples writes, have each document.",),
        )
    ]


def _metrics(cells: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in cells.items()
        if isinstance(value, int | float) and _ERROR not in name and name not in _NO_METRICS
    }


def _better(directions_by_task: Any, metric: str) -> str:
    """Return the direction of a metric if all tasks agree on it."""
    tasks = directions_by_task.values() if isinstance(directions_by_task, dict) else ()
    directions = {task[metric] for task in tasks if isinstance(task, dict) and isinstance(task.get(metric), bool)}
    if len(directions) != 1:
        return ""
    return "higher" if directions.pop() else "lower"


FORMAT = Format(_NAME, _recognises, _read, order=2)
