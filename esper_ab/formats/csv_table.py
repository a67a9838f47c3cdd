"""A CSV file: a header line, then rows of cells, separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.csv_text import lines_of
from esper_ab.formats.source_table import SourceTable
from esper_ab.formats.written_numbers import as_plain_numbers

if TYPE_CHECKING:
    from _csv import Reader

NAME = "a CSV file"
MOST_COLUMNS = 1000
_LONGEST_MARGIN = 4096  # characters in which JSON begins
_FIRST = itemgetter(0)
SEPARATORS = (",", ";", "\t")
_SAMPLE_ROWS = 20  # from which the separator is found
_ROWS_AT_ONCE = 500  # turned into columns: as many as stay in the processor's cache
_MOST_DIFFERENT = 0.5  # of the cells of a column; with more, equal ones are not worth finding


def read_table(file: Path, most_columns: int = MOST_COLUMNS) -> SourceTable:
    """Return the cells of `file` as text; numbers with a decimal comma or a percent sign become plain.

    Raises UsageError, with the row, if it is not a valid CSV file, and OSError if it cannot be read.
    """
    lines = lines_of(file)
    if lines.read(_LONGEST_MARGIN).lstrip()[:1] in ("{", "["):
        raise UsageError(f"{file} is JSON; expected a CSV file with a header line such as group,seed,outcome")
    lines.seek(0)
    separator = _separator(lines)
    lines.seek(0)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    numbers = array("q")
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(file, header, most_columns)
        columns = _columns(_batches(file, reader, header, numbers), len(header))
    except csv.Error as error:
        raise UsageError(f"{file}, row {reader.line_num}: invalid CSV: {error}") from None
    notes = []
    numeric_columns = {}
    for name, cells in zip(header, columns, strict=True):
        numeric_columns[name], note = as_plain_numbers(name, cells, comma_is_decimal=separator == ";")
        notes += [note] if note else []
    return SourceTable(file, NAME, numeric_columns, numbers, notes=tuple(notes))


def _separator(lines: TextIO) -> str:
    """Return the separator that gives the first rows the most cells, and each as many; a comma if none does."""
    sample = list(islice(lines, _SAMPLE_ROWS))
    best_separator = ","
    most_columns = 1
    for separator in SEPARATORS:
        try:
            widths = {len(cells) for cells in csv.reader(sample, delimiter=separator) if cells}
        except csv.Error:
            continue
        if len(widths) == 1 and (width := widths.pop()) > most_columns:
            best_separator, most_columns = separator, width
    return best_separator


def _batches(file: Path, reader: Reader, header: Sequence[str], numbers: array[int]) -> Iterator[list[list[str]]]:
    """Yield many rows at once, without blank ones, and append the number of each to `numbers`."""
    width = len(header)
    while True:
        line_before = reader.line_num
        rows = list(islice(reader, _ROWS_AT_ONCE))
        if not rows:
            return
        ends: Sequence[int] = range(line_before + 1, reader.line_num + 1)
        if len(ends) != len(rows):  # a row of several lines
            ends = [line_before + lines for lines in accumulate(map(_count_lines, rows))]
        if {*map(len, rows)} != {width} or not all(map(str.strip, map(_FIRST, rows))):
            kept_places = [place for place, cells in enumerate(rows) if any(cell.strip() for cell in cells)]
            rows = [rows[place] for place in kept_places]
            ends = [ends[place] for place in kept_places]
            _check_widths(file, header, rows, ends)
        numbers.extend(ends)
        yield rows


def _count_lines(cells: Sequence[str]) -> int:
    """Return how many lines of the file a row has."""
    return 1 + sum(cell.count("\n") + cell.count("\r") - cell.count("\r\n") for cell in cells)


def _check_widths(file: Path, header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> None:
    """Raise UsageError if a row has not as many cells as the header."""
    for cells, number in zip(rows, numbers, strict=True):
        if len(cells) != len(header):
            place = f"column {header[len(cells)]}" if len(cells) < len(header) else f"after column {header[-1]}"
            raise UsageError(f"{file}, row {number}, {place}: the row has {len(cells)} cells, the header {len(header)}")


def _columns(batches: Iterator[list[list[str]]], width: int) -> list[list[str]]:
    """Return the cells of each column. A text that occurs again is kept once, so that 10^6 rows fit into memory."""
    columns: list[list[str]] = [[] for _ in range(width)]
    values_of_columns: list[dict[str, str] | None] = [{} for _ in range(width)]
    for rows in batches:
        for place, cells in enumerate(zip(*rows, strict=True)):
            seen_values = values_of_columns[place]
            if seen_values is not None:
                count_before = len(seen_values)
                columns[place].extend(map(seen_values.setdefault, cells, cells))
                if len(seen_values) - count_before > _MOST_DIFFERENT * len(cells):
                    values_of_columns[place] = None
            else:
                columns[place].extend(cells)
    return columns


def _check_header(file: Path, header: list[str], most_columns: int) -> None:
    if not any(header):
        raise UsageError(f"{file} is empty: it needs a header line such as group,seed,outcome")
    if len(header) > most_columns:
        raise UsageError(f"{file}, row 1: {len(header)} columns; at most {most_columns} are allowed")
    seen_names = set[str]()
    for place, name in enumerate(header):
        if name in seen_names:
            raise UsageError(f"{file}, row 1, column {place + 1}: the column name {name!r} occurs twice")
        seen_names.add(name)
