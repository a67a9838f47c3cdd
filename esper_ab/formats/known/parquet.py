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

    path = "".join(map(_escape_sign, str(file)))
    try:
        with duckdb.connect() as connection:
            connection.execute(_LIMITS)
            relation = connection.from_parquet(path)
            (rows,) = relation.aggregate("count(*)").fetchall()[0]
            if rows > _MOST_ROWS or len(relation.columns) > MOST_COLUMNS:
                raise UsageError(f"{file}, {_NAME}: more than {_MOST_ROWS} rows or {MOST_COLUMNS} columns")
            nested_names = {
                name for name, kind in zip(relation.columns, relation.types, strict=True) if kind.id in _NESTED
            }
            plain_columns = [duckdb.ColumnExpression(name) for name in relation.columns if name not in nested_names]
            if not plain_columns:
                raise UsageError(f"{file}, {_NAME}: its cells have several values each")
            arrays = relation.select(*plain_columns).fetchnumpy()
            columns = {name: _cells(values) for name, values in arrays.items() if name != _INDEX}
    except (duckdb.Error, RuntimeError) as error:
        raise UsageError(f"{file}, {_NAME}, cannot be read: {visible_line(str(error), 160)}") from None
    notes = (
        (f"Columns with several values in a cell are left out: {', '.join(sorted(nested_names))}.",)
        if nested_names
        else ()
    )
    return [SourceTable(file, _NAME, columns, range(1, rows + 1), notes=notes)]


_NESTED = ("list", "array", "struct", "map", "union", "blob")


def _cells(values: Any) -> Cells:
    """Return numbers as an array, with NaN where a cell is empty, and other cells as text, with "" there."""
    missing_mask = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else np.zeros(len(values), bool)
    plain_values = np.ma.getdata(values)
    if plain_values.dtype.kind in "fiub":
        if missing_mask.any():
            plain_values = plain_values.astype(np.float64)
            plain_values[missing_mask] = np.nan
        return plain_values
    texts = []
    for cell, is_missing in zip(plain_values, missing_mask, strict=True):
        if is_missing or cell is None:
            texts.append("")
        else:
            texts.append(str(cell))
    return texts


def _escape_sign(sign: str) -> str:
    """Return a character of a path as DuckDB reads it: in brackets if it has a meaning in patterns."""
    if sign in _GLOB:
        return f"[{sign}]"
    return sign


FORMAT = Format(_NAME, _recognises, _read, general=True)
