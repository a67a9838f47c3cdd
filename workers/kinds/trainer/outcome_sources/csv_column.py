"""The last cell of a CSV column that is not empty."""

from __future__ import annotations

import csv
import io

from esper_ab.contracts.plain_number import number_or_boolean
from workers.kinds.trainer.outcome_sources.left import Found, Left, shortened


def read(file: str, key: str, left: Left) -> Found:
    """Return the last number of column `key`; ValueError if there is none."""
    cell, row = _last_cell(file, key, left.text(file))
    try:
        return Found(number_or_boolean(cell), f"{file}, {key}, row {row}", f"{file}:{key}")
    except ValueError:
        raise ValueError(f"{file}: {key} is {cell!r}, not a number") from None


def has(file: str, key: str, left: Left) -> bool:
    """Whether the file has the column, whatever its cells; a file that cannot be read has not."""
    try:
        header = next(csv.reader(io.StringIO(_strip_comments(key, left.text(file)), newline="")), [])
    except (ValueError, csv.Error):
        return False
    return key in _columns(header)


def _last_cell(file: str, key: str, text: str) -> tuple[str, int]:
    """Return the last cell of a column that is not empty, and its row; what `judge` would refuse is refused here, too.

    Stable-Baselines3 and others write evaluations in rows of their own, and leave the cells of other rows empty.
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
    for place, row in enumerate(reversed(rows[1:])):
        if len(row) != len(columns):
            which = "the last row" if place == 0 else f"row {place + 1} from the end"
            raise ValueError(f"{file}: {which} has {len(row)} cells, the header {len(columns)}")
        if cell := row[columns.index(key)].strip():
            return cell, len(rows) - place
    raise ValueError(f"{file}: {key} is empty in every row")


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
