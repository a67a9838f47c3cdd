"""Rows that are mappings become columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.source_table import Cells

_MOST_CELLS = 50_000_000


def columns_of(origin: str, records: Iterable[Mapping[str, Any]]) -> dict[str, Cells]:
    """Return a column for each name that a record has, None where a record has none; `origin` is for errors."""
    columns: dict[str, list[Any]] = {}
    rows = 0
    for record in records:
        for name, value in record.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = []
            column.extend([None] * (rows - len(column)))
            column.append(value)
        rows += 1
        if rows * len(columns) > _MOST_CELLS:
            raise UsageError(f"{origin}: {len(columns)} columns in more than {rows - 1} rows are too many to read")
    for column in columns.values():
        column.extend([None] * (rows - len(column)))
    return {**columns}
