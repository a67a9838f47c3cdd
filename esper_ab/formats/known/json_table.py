"""JSON in general: records, columns, scores by group, or the numbers of one run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.known import Format
from esper_ab.formats.known._by_group import GROUP, SCORE, are_columns, by_group
from esper_ab.formats.known._curves import likeliest_first, scalars
from esper_ab.formats.known._json import read_json
from esper_ab.formats.known._records import columns_of
from esper_ab.formats.source_table import Cells, SourceTable

_NAME = "a JSON file"


def _recognises(file: Path, head: bytes) -> bool:
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _read(file: Path) -> list[SourceTable]:
    value = read_json(file)
    if isinstance(value, dict) and isinstance(value.get("data"), list):  # pandas' orient="table" and "split"
        names = value.get("columns")
        value = value["data"]
        if isinstance(names, list) and all(isinstance(row, list) and len(row) == len(names) for row in value):
            value = [dict(zip(map(str, names), row, strict=True)) for row in value]
    if isinstance(value, list):
        return [_read_records(file, value)]
    if not isinstance(value, dict) or not value:
        raise UsageError(f"{file}, {_NAME}: expected records, columns, or scores by group")
    inner_values = list(value.values())
    if all(isinstance(item, list) for item in inner_values):
        return [_read_lists(file, value)]
    if all(isinstance(item, Mapping) for item in inner_values) and (table := _read_mappings(file, value)):
        return [table]
    return [_read_one_run(file, value)]


def _read_records(file: Path, records: list[Any]) -> SourceTable:
    for place, record in enumerate(records):
        if not isinstance(record, dict):
            raise UsageError(f"{file}, {_NAME}: element {place} is no object, so it is not a row with named cells")
    if not records:
        raise UsageError(f"{file}, {_NAME}, is empty")
    columns = columns_of(f"{file}, {_NAME}", (scalars(record) for record in records))
    return SourceTable(file, _NAME, columns, range(1, len(records) + 1))


def _read_lists(file: Path, lists: Mapping[str, list[Any]]) -> SourceTable:
    """Read columns of equal length, if a name is known, or arrays of runs or of runs x tasks by group."""
    if are_columns(lists):
        if len({len(cells) for cells in lists.values()}) != 1:
            raise UsageError(f"{file}, {_NAME}: its columns have different lengths")
        columns: dict[str, Cells] = {**lists}
        return SourceTable(file, _NAME, columns, range(1, len(next(iter(lists.values()))) + 1))
    arrays = {}
    for name, values in lists.items():
        try:
            arrays[name] = np.array([_numbers(row) for row in values], np.float64)
        except (ValueError, TypeError):
            raise UsageError(
                f"{file}, {_NAME}, {name!r}: expected a list of numbers, one per run, or lists of one length with a "
                "number per task"
            ) from None
    return by_group(file, _NAME, arrays)


def _numbers(row: Any) -> list[float] | float:
    """Return the numbers in a row, or that in a single cell."""
    if isinstance(row, list):
        return [_number(cell) for cell in row]
    return _number(row)


def _number(cell: Any) -> float:
    return np.nan if cell is None else float(cell)


def _read_mappings(file: Path, mappings: Mapping[str, Mapping[str, Any]]) -> SourceTable | None:
    """Read columns by the numbers of their rows, as pandas writes them, or the outcome of each seed by group.

    None if the inner values are something else.
    """
    if not all(
        isinstance(cell, bool | int | float | str | None) for cells in mappings.values() for cell in cells.values()
    ):
        return None
    if are_columns(mappings):
        keys = list(dict.fromkeys(key for cells in mappings.values() for key in cells))
        columns: dict[str, Cells] = {name: [cells.get(key) for key in keys] for name, cells in mappings.items()}
        return SourceTable(file, _NAME, columns, range(1, len(keys) + 1))
    key_sets = [set(cells) for cells in mappings.values()]
    if not all(key.lstrip("-").isdigit() for keys in key_sets for key in keys):
        return None
    rows = [(name, key, cell) for name, cells in mappings.items() for key, cell in cells.items()]
    return SourceTable(
        file=file,
        format=_NAME,
        columns={GROUP: [row[0] for row in rows], "seed": [row[1] for row in rows], SCORE: [row[2] for row in rows]},
        row_numbers=range(1, len(rows) + 1),
        roles={GROUP: GROUP, "seed": "seed"},
        outcomes=(SCORE,),
    )


def _read_one_run(file: Path, result: Mapping[str, Any]) -> SourceTable:
    """Read the numbers that one run wrote, such as eval.return."""
    flat_scalars = scalars(result)
    numbers = [name for name, value in flat_scalars.items() if not isinstance(value, str)]
    if not numbers:
        raise UsageError(f"{file}, {_NAME}: it has no numbers by name")
    return SourceTable(
        file, _NAME, {name: [value] for name, value in flat_scalars.items()}, [1], outcomes=likeliest_first(numbers)
    )


FORMAT = Format(_NAME, _recognises, _read, general=True)
