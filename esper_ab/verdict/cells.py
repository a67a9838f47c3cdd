"""Which run each group has in each task and replicate. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import repeat

import numpy as np

from esper_ab.stats.floats import Ints
from esper_ab.verdict.names import Names

_NO_ROWS = np.zeros(0, dtype=np.int64)


class Cells:
    """The rows of runs by group, task and replicate, from these columns [rows]."""

    def __init__(self, group: Names, task: Names, replicate: Names) -> None:
        self._group = group
        self._task = task
        self._replicate = replicate
        self._asked: tuple[Sequence[str], Ints] = (), _NO_ROWS

    @cached_property
    def _rows(self) -> dict[tuple[str, str], Ints]:
        """The rows of each group in each task, in order; cells in the order of their first rows."""
        if not self._group.codes.size:
            return {}
        tasks = len(self._task.names)
        key = self._group.codes * tasks + self._task.codes
        by_key = np.argsort(key, kind="stable")
        keys, starts = np.unique(key[by_key], return_index=True)
        rows_by_key = np.split(by_key, starts[1:])
        cells = sorted(zip(keys.tolist(), rows_by_key, strict=True), key=lambda cell: int(cell[1][0]))
        return {(self._group.names[key // tasks], self._task.names[key % tasks]): rows for key, rows in cells}

    @property
    def sizes(self) -> dict[tuple[str, str], int]:
        """The number of runs of each group in each task, in the order of their first rows."""
        return {cell: rows.size for cell, rows in self._rows.items()}

    def rows_in(self, group: str, task: str) -> Ints:
        """Return the rows of a group in a task, in order."""
        return self._rows.get((group, task), _NO_ROWS)

    def rows_of(self, group: str, task: str, replicates: Sequence[str]) -> Ints:
        """Return the row of the run in each of `replicates`; -1 where there is no run."""
        row_of = np.full(len(self._replicate.names) + 1, -1)  # the last one is for names that no row has
        rows = self.rows_in(group, task)
        row_of[self._replicate.codes[rows]] = rows
        return np.asarray(row_of[self._codes(replicates)], dtype=np.int64)

    def _codes(self, replicates: Sequence[str]) -> Ints:
        """Return the number of each of `replicates`, -1 for one that no row has; those asked for last are kept."""
        asked_replicates, codes = self._asked
        if asked_replicates is not replicates:
            number = self._replicate.code_of
            codes = np.fromiter(map(number.get, replicates, repeat(-1)), dtype=np.int64, count=len(replicates))
            self._asked = replicates, codes
        return codes

    def lacking(self, group: str, task: str, replicates: Sequence[str]) -> list[str]:
        """Return those of `replicates` in which the group has no run."""
        missing_places = np.flatnonzero(self.rows_of(group, task, replicates) < 0)
        return [replicates[place] for place in missing_places.tolist()]
