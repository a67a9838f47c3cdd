"""The cells of a CSV column that are not empty."""

from __future__ import annotations

import csv
import io

from esper_ab.contracts.plain_number import number_or_boolean
from workers.kinds.trainer.outcome_sources.left import Left, shortened
from workers.kinds.trainer.outcome_sources.values import Values


def read(file: str, key: str, left_output: Left) -> Values:
    """Return the numbers of column `key`; ValueError if there is none."""
    columns, rows = _rows(file, key, left_output.text(file))
    column = columns.index(key)

    def at(place: int) -> float:
        number, row = rows[place]
        if len(row) != len(columns):
            raise ValueError(f"{file}: row {number} has {len(row)} cells, the header {len(columns)}")
        try:
            return number_or_boolean(row[column])
        except ValueError:
            raise ValueError(f"{file}: {key} is {row[column].strip()!r} in row {number}, not a number") from None

    return Values(len(rows), at, lambda place: f"{file}, {key}, row {rows[place][0]}", f"{file}:{key}")


def has(file: str, key: str, left_output: Left) -> bool:
    """Whether the file has the column, whatever its cells; a file that cannot be read has not."""
    try:
        header = next(csv.reader(io.StringIO(_strip_comments(key, left_output.text(file)), newline="")), [])
    except (ValueError, csv.Error):
        return False
    return key in _columns(header)


def _rows(file: str, key: str, text: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the columns of a table, and the rows that have a cell in column `key` or another width, with their number.

    What `judge` would refuse is refused here, too. Stable-Baselines3 and others write evaluations in rows of their own,
    and leave the cells of other rows empty.
    """
    table = _strip_comments(key, text)
    try:
        rows = [row for row in csv.reader(io.StringIO(table, newline=""), strict=True) if row]
    except csv.Error as error:
        raise ValueError(f"{file}: not CSV: {error}") from None
    columns = _columns(rows[0]) if rows else []
    if key not in columns:
        raise ValueError(f"{file}: no column {key!r}; available columns: {shortened(columns)}")
    if columns.count(key) > 1:
        raise ValueError(f"{file}: the column name {key!r} occurs twice")
    if len(rows) == 1:
        raise ValueError(f"{file}: it has a header but no rows")
    column = columns.index(key)
    numbered = [
        (number, row) for number, row in enumerate(rows[1:], 2) if len(row) != len(columns) or row[column].strip()
    ]
    if not numbered:
        raise ValueError(f"{file}: {key} is empty in every row")
    return columns, numbered


def _strip_comments(key: str, text: str) -> str:
    """Return the text of a CSV file without the lines before its header that start with #, as in Monitor's files.

    A line that has the column `key` is the header, even if it starts with #.
    """
    lines = list(io.StringIO(text, newline=""))
    for place, line in enumerate(lines):
        if not line.startswith("#") or key in _columns(line.rstrip("\r\n").split(",")):
            return "".join(lines[place:])
    return text


def _columns(header: list[str]) -> list[str]:
    return [name.strip() for name in header]
