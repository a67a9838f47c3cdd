"""The rows of a query, and how they are written: as JSON, as CSV and as a table for a terminal."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from esper_ab.contracts.visible import visible_line
from esper_ab.contracts.wording import counted

_ROWS_SHOWN = 200  # in the table for the terminal; --json and --csv give all


class QueryResult(msgspec.Struct, frozen=True, kw_only=True):
    """The columns, which have distinct names, and the rows of one query, as Python values."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


def query_json(answer: QueryResult) -> str:
    """Return the rows of a query as a JSON array of objects."""
    return _json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows], indent=2)


def query_csv(answer: QueryResult) -> str:
    """Return the rows of a query as comma-separated values with a header line; NULL is empty.

    Lists, structs and maps are written as JSON, as in the files of `export`.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in answer.rows:
        cells: list[object] = []
        for value in row:
            if value is None:
                cells.append("")
            else:
                cells.append(_written(value))
        writer.writerow(cells)
    return buffer.getvalue().removesuffix("\n")


def query_text(answer: QueryResult) -> str:
    """Return a plain table for the terminal: numbers right-aligned, floats with six digits, long results truncated."""
    displayed_rows = answer.rows[:_ROWS_SHOWN]
    lines = [
        tuple(map(visible_line, answer.columns)),
        *(tuple(_cell(value) for value in row) for row in displayed_rows),
    ]
    widths = [max(len(line[place]) for line in lines) for place in range(len(answer.columns))]
    numeric_flags = [_is_numeric([row[place] for row in displayed_rows]) for place in range(len(answer.columns))]
    text = [_align(line, widths, numeric_flags) for line in lines]
    text.insert(1, "  ".join("-" * width for width in widths))
    rows = counted(len(answer.rows), "row")
    if len(answer.rows) > _ROWS_SHOWN:
        rows += f"; the first {_ROWS_SHOWN} are shown (all: --json or --csv)"
    return "\n".join([*text, f"({rows})"])


def _is_numeric(values: Sequence[Any]) -> bool:
    """True if a column has nothing but numbers and NULL."""
    return all(value is None or isinstance(value, int | float) for value in values)


def _align(cells: Sequence[str], widths: Sequence[int], numeric_flags: Sequence[bool]) -> str:
    """Return a line of the table: cells of numeric columns on the right, others on the left."""
    aligned_cells = []
    for cell, width, is_right in zip(cells, widths, numeric_flags, strict=True):
        if is_right:
            aligned_cells.append(cell.rjust(width))
        else:
            aligned_cells.append(cell.ljust(width))
    return "  ".join(aligned_cells).rstrip()


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(_plain(value), indent=indent, default=_written, allow_nan=False)


def _plain(value: Any) -> Any:
    """Replace infinity and NaN, which JSON lacks, by None, and SQL's decimals by floats."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_json_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _json_key(key: Any) -> str:
    return key if isinstance(key, str) else _written(key)


def _written(value: Any) -> str:
    """Return a value as it is written in SQL and JSON, without Python syntax."""
    if isinstance(value, dict | list | tuple | bool):
        return _json(value)
    if isinstance(value, bytes):
        return value.decode("ascii", "backslashreplace")
    return str(value)


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, float):
        return f"{value:.6g}"
    return visible_line(_written(value))
