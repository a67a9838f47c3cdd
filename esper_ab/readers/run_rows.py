"""Read rows of runs: columns of cells become columns of names and numbers, without a Python object per row. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.formats.cells import LONGEST_NAME, outcome_of
from esper_ab.readers.cell_columns import CellColumns, outcomes
from esper_ab.readers.name_cells import locate, read_name
from esper_ab.verdict.names import Names
from esper_ab.verdict.observations import is_integer
from esper_ab.verdict.runs import Runs
from esper_ab.verdict.scale import MEAN

Value = TypeVar("Value")
_WITH_EXCEPTIONS = ("task", "cluster", "order")  # columns in which some names mean something else, or nothing


def run_rows(
    source: str, columns: CellColumns, used_names: Mapping[str, str], pair_column: str, row_numbers: Sequence[int]
) -> Runs:
    """Return a run per row. `used_names`: our name of a column -> the source's; `pair_column`: ours.

    Raises UsageError for the invalid cell that comes first, row by row.
    """
    reader = _Reader(source, columns, used_names, row_numbers)
    task = reader.names("task")
    cluster = reader.names("cluster")
    order = reader.names("order")
    group = reader.names("group")
    replicate = reader.names(pair_column)
    run = reader.names("run")
    value = outcomes(columns, used_names["outcome"], reader.outcome)
    reader.refuse_first()
    return replace(
        Runs.with_outcomes(group, replicate, value),
        task=task,
        run=run,
        cluster=cluster,
        order=_numbers(order),
        row=np.asarray(row_numbers, dtype=np.int64),
    )


class _Reader:
    """Reads columns one after the other, and knows which invalid cell comes first, row by row."""

    def __init__(
        self, source: str, columns: CellColumns, used_names: Mapping[str, str], row_numbers: Sequence[int]
    ) -> None:
        self._source = source
        self._columns = columns
        self._used = used_names
        self._row_numbers = row_numbers
        self._invalid_row = len(row_numbers)
        self._refusal: UsageError | None = None

    def names(self, column: str) -> Names:
        """Return the names in one of our columns; "" for all rows if the source does not have it."""
        if column not in self._used:
            return Names.same("", len(self._row_numbers))
        cells = self._columns.distinct(self._used[column])
        if column not in _WITH_EXCEPTIONS and (plain_names := cells.plain_names(LONGEST_NAME)) is not None:
            return plain_names  # the usual case, told without a look at each cell
        return cells.names(lambda cell, row: self._unless_later(row, lambda: self._name(cell, column, row), ""))

    def outcome(self, cell: object, row: int) -> float | None:
        """Return the outcome in a cell."""
        return self._unless_later(row, lambda: outcome_of(cell, self._where(row, "outcome")), None)

    def refuse_first(self) -> None:
        """Raise the refusal of the invalid cell that comes first, if there is one."""
        if self._refusal is not None:
            raise self._refusal

    def _unless_later(self, row: int, read: Callable[[], Value], nothing: Value) -> Value:
        """Return what `read` returns, and keep its refusal; `nothing` from the first row with an invalid cell on."""
        if row >= self._invalid_row:
            return nothing
        try:
            return read()
        except UsageError as refusal:
            self._invalid_row = row
            self._refusal = refusal
            return nothing

    def _where(self, row: int, column: str) -> str:
        return locate(self._source, self._row_numbers[row], self._used, column)

    def _name(self, cell: object, column: str, row: int) -> str:
        name = read_name(cell, column, lambda: self._where(row, column))
        if column == "task" and name == MEAN:
            raise UsageError(f"{self._where(row, column)}: the name {MEAN!r} is reserved")
        if column == "order" and name and not is_integer(name):
            raise UsageError(f"{self._where(row, column)}: {name!r} is not a whole number")
        return name


def _numbers(order: Names) -> tuple[int | None, ...]:
    """Return the place of each row in the order of runs; () if it is not known of any row."""
    if not any(order.names):
        return ()
    numbers = [int(name) if name else None for name in order.names]
    return tuple(numbers[code] for code in order.codes.tolist())
