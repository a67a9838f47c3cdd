"""The curves of a chart, as W&B exports them: a row per step, and for each run a column "RUN - METRIC".

Beside each are its __MIN and __MAX: of the points, or of the runs of a group, that the chart drew as one.
"""

from __future__ import annotations

import csv
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import counted
from esper_ab.formats.csv_table import read_table
from esper_ab.formats.known import Format
from esper_ab.formats.source_table import Cells, SourceTable

_NAME = "the curves of a W&B chart"
_LEAST, _MOST = "__MIN", "__MAX"
_BETWEEN = " - "
_RUN = "run"
_MOST_COLUMNS = 10_000


def _recognises(file: Path, head: bytes) -> bool:
    first_line = head.partition(b"\n")[0].decode("utf-8-sig", errors="replace").strip()
    if _LEAST not in first_line and _MOST not in first_line:
        return False
    return bool(_curves(next(csv.reader([first_line]), [])))


def _curves(names: list[str]) -> list[str]:
    known_names = set(names)
    return [name for name in names if {name + _LEAST, name + _MOST} <= known_names and _BETWEEN in name]


def _read(file: Path) -> list[SourceTable]:
    table = read_table(file, _MOST_COLUMNS)
    curves = _curves(list(table.columns))
    ranges = {name + end for name in curves for end in (_LEAST, _MOST)}
    axes = [name for name in table.columns if name not in ranges and name not in curves]
    if len(axes) != 1:
        raise UsageError(f"{file}, {_NAME}: expected one column beside the curves, the step, not {len(axes)}")
    metrics: dict[str, dict[str, str]] = {}  # metric -> run -> column
    for name in curves:
        run, _, metric = name.rpartition(_BETWEEN)
        metrics.setdefault(metric, {})[run] = name
    runs = list(dict.fromkeys(run for columns in metrics.values() for run in columns))
    rows = len(table.row_numbers)
    empty_cells = [""] * rows
    columns: dict[str, Cells] = {
        _RUN: [run for run in runs for _ in range(rows)],
        axes[0]: [*table.columns[axes[0]]] * len(runs),
    }
    for metric, column_by_run in metrics.items():
        cells: list[object] = []
        for run in runs:
            if run in column_by_run:
                cells += table.columns[column_by_run[run]]
            else:
                cells += empty_cells
        columns[metric] = cells
    return [
        SourceTable(
            file=file,
            format=_NAME,
            columns=columns,
            row_numbers=[*table.row_numbers] * len(runs),
            roles={"run": _RUN, "step": axes[0]},
            outcomes=tuple(metrics),
            notes=(*_range_note(table, curves, len(runs)), *table.notes),
        )
    ]


def _range_note(table: SourceTable, curves: list[str], runs: int) -> tuple[str, ...]:
    """Say that a curve has means, if their least and greatest values differ."""
    for name in curves:
        pairs = zip(table.columns[name + _LEAST], table.columns[name + _MOST], strict=True)
        if any(least_column != most_column for least_column, most_column in pairs):
            return (
                f"{counted(runs, 'curve')}: at some steps W&B drew the mean of several points or runs, and this mean "
                "is read; if the chart groups runs, export it without grouping.",
            )
    return ()


FORMAT = Format(_NAME, _recognises, _read)
