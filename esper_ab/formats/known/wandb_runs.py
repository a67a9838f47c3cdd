"""The table of runs, as W&B exports it: a row per run with its Name and State, its configuration and its summary."""

from __future__ import annotations

import csv
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.csv_table import read_table
from esper_ab.formats.known import Format
from esper_ab.formats.source_table import SourceTable

_NAME = "a W&B table of runs"
_RUN, _STATE = "Name", "State"
_STATES = frozenset({"finished", "crashed", "failed", "killed", "running", "preempted", "preempting", "pending"})


def _recognises(file: Path, head: bytes) -> bool:
    lines = head.decode("utf-8-sig", errors="replace").splitlines()
    if len(head) == len(head.rstrip()) and len(lines) > 2:
        lines.pop()  # the head may end within it
    try:
        rows = [cells for cells in csv.reader(lines) if cells]
    except csv.Error:
        return False
    if len(rows) < 2 or not {_RUN, _STATE} <= {*rows[0]}:
        return False
    place = rows[0].index(_STATE)
    return all(len(cells) > place and cells[place] in _STATES for cells in rows[1:])


def _read(file: Path) -> list[SourceTable]:
    table = read_table(file)
    if not {_RUN, _STATE} <= table.columns.keys():
        raise UsageError(f"{file}, {_NAME}: it has no columns {_RUN} and {_STATE}")
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=table.columns,
            row_numbers=table.row_numbers,
            roles={"run": _RUN, "state": _STATE},
            notes=table.notes,
        )
    ]


FORMAT = Format(_NAME, _recognises, _read)
