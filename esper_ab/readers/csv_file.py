"""A CSV file of outcomes: a header line, then one row per run."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.readers.csv_text import lines_of
from esper_ab.readers.external_table import observations_of
from esper_ab.verdict.observations import Observations

_LONGEST_MARGIN = 4096  # characters in which JSON begins
_MOST_COLUMNS = 1000
_STARTS = {";": "semicolons", "\t": "tabs"}


def read_csv(file: Path, names: Mapping[str, str] | None = None, groups: Sequence[str] = ()) -> Observations:
    """Read `file`. Raises UsageError, with row and column, if it is not a valid table of outcomes.

    Rows are counted as in an editor: the header is row 1. `names` and `groups` are as in `observations_of`.
    """
    lines = lines_of(file)
    if lines.read(_LONGEST_MARGIN).lstrip()[:1] in ("{", "["):
        raise UsageError(f"{file} is JSON; expected a CSV file with a header line such as group,seed,outcome")
    lines.seek(0)
    reader = csv.reader(lines, strict=True)
    numbers = []
    rows = []
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(file, header)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                if len(cells) < len(header):
                    at = f"column {header[len(cells)]}"
                else:
                    at = f"after column {header[-1]}"
                raise UsageError(
                    f"{file}, row {reader.line_num}, {at}: the row has {len(cells)} cells, the header {len(header)}"
                )
            numbers.append(reader.line_num)
            rows.append(cells)
    except csv.Error as error:
        raise UsageError(f"{file}, row {reader.line_num}: invalid CSV: {error}") from None
    columns = {name: [row[place] for row in rows] for place, name in enumerate(header)}
    return observations_of(str(file), columns, numbers, names, groups)


def _check_header(file: Path, header: list[str]) -> None:
    if not any(header):
        raise UsageError(f"{file} is empty: it needs a header line such as group,seed,outcome")
    for separator, words in _STARTS.items():
        if len(header) == 1 and separator in header[0]:
            raise UsageError(f"{file}, row 1: columns are separated by {words}; use commas")
    if len(header) > _MOST_COLUMNS:
        raise UsageError(f"{file}, row 1: {len(header)} columns; at most {_MOST_COLUMNS} are allowed")
    for place, name in enumerate(header):
        if name in header[:place]:
            raise UsageError(f"{file}, row 1, column {place + 1}: the column name {name!r} occurs twice")
