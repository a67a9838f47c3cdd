"""Rows read from one file, before it is known what its columns mean.

`formats` makes tables of files; which rows are runs, which are items, and which group each belongs to, is decided
afterwards, from columns or from paths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.wording import did_you_mean
from esper_ab.formats.cells import outcome_of

# What a format may know of a column: its part in an observation, the training step of a row, or the state of its run.
ROLES = ("group", "seed", "run", "task", "item", "cluster", "repeat", "step", "state")
Cells = Sequence[Any] | np.ndarray  # of a column, [rows]
NOT_FINITE = math.inf  # a value that was logged but is no finite number, as a run that diverges logs; NaN: no value


@dataclass(frozen=True)
class SourceTable:
    """The rows of one file.

    A file of a single run has no columns with the roles group, seed and run: its path may tell them. Cells are as the
    file has them: text in a CSV file; None, "" or NaN where a row has no value.
    """

    file: Path
    format: str  # in words for the user, with an article: "an SB3 monitor.csv"
    columns: Mapping[str, Cells]  # by the file's own names
    row_numbers: Sequence[int]  # [rows], as the user would count them in the file, for messages
    roles: Mapping[str, str] = field(default_factory=dict)  # a word of ROLES -> the file's name of the column
    outcomes: tuple[str, ...] = ()  # columns that can be the outcome, likeliest first; (): not known
    better: str = ""  # "higher" or "lower", if the format fixes it
    window: int = 1  # rows at the end whose mean is the outcome unless the user says otherwise: 100 training episodes
    row: str = "value"  # what a row has of a run, in words: a value at a step, or an "episode"
    notes: tuple[str, ...] = ()  # sentences for the user

    def column(self, role: str) -> Cells | None:
        """Return the cells of the column with this role, or None if there is none."""
        name = self.roles.get(role)
        return None if name is None else self.columns[name]


@dataclass(frozen=True)
class Series:
    """The values of one column over the steps of a run, without the rows that have no value."""

    name: str
    steps: np.ndarray  # [n] float64; the number of the row if the table has no steps
    values: np.ndarray  # [n] float64, or NOT_FINITE
    row_numbers: Sequence[int]  # [n]


def series_of(table: SourceTable, name: str) -> Series:
    """Return the values of column `name` of a single run, in the order of the file.

    Raises UsageError if there is no such column, or if a cell is neither empty nor a number.
    """
    if name not in table.columns:
        available_names = table.outcomes or tuple(table.columns)
        raise UsageError(f"{table.file}, {table.format}, has no {name!r}; {did_you_mean(name, available_names)}")
    values = logged_numbers(table, name)
    kept_rows = np.flatnonzero(~np.isnan(values))
    rows = [table.row_numbers[place] for place in kept_rows.tolist()]
    steps = np.asarray(rows, np.float64)
    if "step" in table.roles:
        steps = logged_numbers(table, table.roles["step"])[kept_rows]
    return Series(name, steps, values[kept_rows], rows)


def logged_numbers(table: SourceTable, name: str) -> np.ndarray:
    """Return the cells of a column as float64 [rows]: NaN for an empty one, NOT_FINITE for one that says NaN.

    An array has NaN where a cell is empty. Raises UsageError if a cell is neither empty nor a number.
    """
    cells = table.columns[name]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return cells.astype(np.float64)
    values = np.empty(len(cells), np.float64)
    for place, (cell, row) in enumerate(zip(cells, table.row_numbers, strict=True)):
        if _says_nan(cell):
            values[place] = NOT_FINITE
        else:
            value = outcome_of(cell, f"{table.file}, row {row}, column {name}")
            values[place] = math.nan if value is None else value
    return values


def _says_nan(cell: object) -> bool:
    return cell == NOT_FINITE or (isinstance(cell, str | float) and str(cell).strip().lower() == "nan")
