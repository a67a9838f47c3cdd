"""A CSV file of outcomes becomes observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from esper_ab.formats.csv_table import read_table
from esper_ab.readers.external_table import observations_of
from esper_ab.verdict.observations import Observations


def read_csv(
    file: Path, names: Mapping[str, str] | None = None, groups: Sequence[str] = (), rows: str | None = None
) -> Observations:
    """Read `file`. Raises UsageError, with row and column, if it is not a valid table of outcomes.

    Rows are counted as in an editor: the header is row 1. `names`, `groups` and `rows` are as in `observations_of`.
    """
    table = read_table(file)
    columns = {name: [*cells] for name, cells in table.columns.items()}
    return observations_of(str(file), columns, table.row_numbers, names, groups, rows)
