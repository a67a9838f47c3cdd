"""All runs of a source in columns: there may be a million, and an `Observation` is made only where one is asked for.

Pure.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import msgspec
import numpy as np

from esper_ab.stats.floats import Bools, Floats, Ints
from esper_ab.verdict.cells import Cells
from esper_ab.verdict.names import Names
from esper_ab.verdict.observation import Observation

_AT_ONCE = 10_000  # rows that are written as text at once


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs(Sequence[Observation]):
    """A row per run, in columns, all [rows]; `Observation` says what they mean."""

    group: Names
    replicate: Names
    task: Names
    run: Names
    cluster: Names
    value: Floats  # NaN: the run was lost
    cancelled: Bools
    order: tuple[int | None, ...]  # (): not known of any row
    place: Ints  # -1: not known
    row: Ints

    @classmethod
    def of(cls, rows: Iterable[Observation]) -> Runs:
        """Return these rows in columns."""
        listed_rows = list(rows)
        order = tuple(row.order for row in listed_rows)
        return cls(
            group=Names.of(row.group for row in listed_rows),
            replicate=Names.of(row.replicate for row in listed_rows),
            task=Names.of(row.task for row in listed_rows),
            run=Names.of(row.run for row in listed_rows),
            cluster=Names.of(row.cluster for row in listed_rows),
            value=np.array([math.nan if row.value is None else row.value for row in listed_rows], dtype=np.float64),
            cancelled=np.array([row.cancelled for row in listed_rows], dtype=np.bool_),
            order=() if {*order} <= {None} else order,
            place=np.array([-1 if row.place is None else row.place for row in listed_rows], dtype=np.int64),
            row=np.array([row.row for row in listed_rows], dtype=np.int64),
        )

    @classmethod
    def with_outcomes(cls, group: Names, replicate: Names, value: Floats) -> Runs:
        """Return runs of which nothing else is known."""
        nothing = Names.same("", value.size)
        return cls(
            group=group,
            replicate=replicate,
            task=nothing,
            run=nothing,
            cluster=nothing,
            value=value,
            cancelled=np.zeros(value.size, dtype=np.bool_),
            order=(),
            place=np.full(value.size, -1),
            row=np.zeros(value.size, dtype=np.int64),
        )

    @cached_property
    def cells(self) -> Cells:
        """The rows by group, task and replicate."""
        return Cells(self.group, self.task, self.replicate)

    @property
    def lost(self) -> Bools:
        """Whether each run was lost [rows]."""
        return np.isnan(self.value)

    def taken(self, rows: Ints | Bools | slice) -> Runs:
        """Return these rows."""
        places = np.arange(len(self))[rows]
        return Runs(
            group=self.group.taken(rows),
            replicate=self.replicate.taken(rows),
            task=self.task.taken(rows),
            run=self.run.taken(rows),
            cluster=self.cluster.taken(rows),
            value=self.value[rows],
            cancelled=self.cancelled[rows],
            order=tuple(self.order[place] for place in places.tolist()) if self.order else (),
            place=self.place[rows],
            row=self.row[rows],
        )

    def find(self, group: str, task: str, replicate: str) -> Observation | None:
        """Return one run; None if it does not exist."""
        (row,) = self.cells.rows_of(group, task, [replicate]).tolist()
        if row < 0:
            return None
        return self[int(row)]

    def outcomes(self, group: str, task: str) -> Floats:
        """Return the outcomes of a group in a task, in the order of their rows, without lost ones."""
        values = self.value[self.cells.rows_in(group, task)]
        return np.asarray(values[~np.isnan(values)], dtype=np.float64)

    def among(self, groups: Collection[str], tasks: Collection[str], replicates: Collection[str]) -> Bools:
        """Return whether each run is of these groups, tasks and replicates [rows]."""
        return self.group.among(groups) & self.task.among(tasks) & self.replicate.among(replicates)

    def digest(self) -> bytes:
        """Return a sha256 of all outcomes, which does not depend on the order of the rows."""
        columns = (self.group, self.replicate, self.task, self.cluster)
        varying_columns = [column for column in columns if len(column.names) > 1 or column is self.group]
        alphabetical = np.lexsort([column.ranks for column in reversed(varying_columns)])
        digest = hashlib.sha256(b"[")
        for start in range(0, alphabetical.size, _AT_ONCE):
            rows = alphabetical[start : start + _AT_ONCE]
            names = [column.of_rows(rows) for column in columns]
            text = msgspec.json.encode(list(zip(*names, self.value[rows].tolist(), strict=True)))  # NaN becomes null
            if start:
                digest.update(b",")
            digest.update(text[1:-1])  # without the brackets
        digest.update(b"]")
        return digest.digest()

    def __len__(self) -> int:
        return self.value.size

    def __iter__(self) -> Iterator[Observation]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, place: int) -> Observation: ...
    @overload
    def __getitem__(self, place: slice) -> Runs: ...
    def __getitem__(self, place: int | slice) -> Observation | Runs:
        if isinstance(place, slice):
            return self.taken(place)
        value = float(self.value[place])
        start_place = int(self.place[place])
        return Observation(
            group=self.group[place],
            replicate=self.replicate[place],
            task=self.task[place],
            value=None if math.isnan(value) else value,
            cancelled=bool(self.cancelled[place]),
            run=self.run[place],
            cluster=self.cluster[place],
            order=self.order[place] if self.order else None,
            place=None if start_place < 0 else start_place,
            row=int(self.row[place]),
        )
