"""Parquet, read by DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.visible import visible_line
from esper_ab.formats.csv_table import MOST_COLUMNS
from esper_ab.formats.known import Format
from esper_ab.formats.source_table import Cells, SourceTable

_NAME = "a Parquet file"
_MAGIC = b"PAR1"
_MOST_ROWS = 10_000_000
_LIMITS = "SET memory_limit = '2GiB'; SET temp_directory = ''"
_GLOB = "*?["  # characters of a path that DuckDB takes for a pattern
_INDEX = "__index_level_0__"  # pandas' name of an index without one


def _recognises(file: Path, head: bytes) -> bool:
    return head.startswith(_MAGIC)


def _read(file: Path) -> list[SourceTable]:
    import duckdb

    path = "".join(f"[{sign}]" if sign in _GLOB else sign for sign in str(file))
    try:
        with duckdb.connect() as connection:
            connection.execute(_LIMITS)
            relation = connection.from_parquet(path)
            (rows,) = relation.aggregate("count(*)").fetchall()[0]
            if rows > _MOST_ROWS or len(relation.columns) > MOST_COLUMNS:
                raise UsageError(f"{file}, {_NAME}: more than {_MOST_ROWS} rows or {MOST_COLUMNS} columns")
            nested = {name for name, kind in zip(relation.columns, relation.types, strict=True) if kind.id in _NESTED}
            plain = [duckdb.ColumnExpression(name) for name in relation.columns if name not in nested]
            if not plain:
                raise UsageError(f"{file}, {_NAME}: its cells have several values each")
            arrays = relation.select(*plain).fetchnumpy()
            columns = {name: _cells(values) for name, values in arrays.items() if name != _INDEX}
    except (duckdb.Error, RuntimeError) as error:
        raise UsageError(f"{file}, {_NAME}, cannot be read: {visible_line(str(error), 160)}") from None
    notes = (f"Columns with several values in a cell are left out: {', '.join(sorted(nested))}.",) if nested else ()
    return [SourceTable(file, _NAME, columns, range(1, rows + 1), notes=notes)]


_NESTED = ("list", "array", "struct", "map", "union", "blob")


def _cells(values: Any) -> Cells:
    """Return numbers as an array, with NaN where a cell is empty, and other cells as text, with "" there."""
    missing = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else np.zeros(len(values), bool)
    plain = np.ma.getdata(values)
    if plain.dtype.kind in "fiub":
        if missing.any():
            plain = plain.astype(np.float64)
            plain[missing] = np.nan
        return plain
    return ["" if empty or cell is None else str(cell) for cell, empty in zip(plain, missing, strict=True)]


FORMAT = Format(_NAME, _recognises, _read, general=True)
