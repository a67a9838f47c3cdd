"""The columns of a table of cells, in which equal cells are looked at once. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np

from esper_ab.contracts.measures import LARGEST_OUTCOME
from esper_ab.stats.floats import Floats, Ints, distinct
from esper_ab.verdict.names import Names, first_rows, numbered

_ALIKE = frozenset({str, int, float, NoneType})  # equal cells of these types have equal texts; 1 and True have not
_DIGITS = re.compile(r"[0-9+\-.eE\n]*", re.ASCII)  # of numbers that float() reads as `formats.cells` does


@dataclass(frozen=True, eq=False)
class DistinctCells:
    """The distinct cells of a column, in the order of their first rows."""

    codes: Ints  # [rows], the place of each row's cell in `cells`
    cells: list[object]

    def with_first_rows(self) -> Iterator[tuple[object, int]]:
        """Yield each cell with its first row."""
        return zip(self.cells, first_rows(self.codes, len(self.cells)).tolist(), strict=True)

    def names(self, read: Callable[[object, int], str]) -> Names:
        """Return the names of all rows; `read` returns the name in a cell, whose first row it is told."""
        codes, names = numbered([read(cell, row) for cell, row in self.with_first_rows()])
        return Names(codes[self.codes], tuple(names))

    def plain_names(self, longest: int = sys.maxsize) -> Names | None:
        """Return the names of all rows if the cells are nothing but names, of this length at most; else None."""
        texts = [cell for cell in self.cells if isinstance(cell, str)]
        if len(texts) < len(self.cells) or not all(texts) or max(map(len, texts), default=0) > longest:
            return None
        if not "".join(texts).isprintable() or " " in {text[0] for text in texts} | {text[-1] for text in texts}:
            return None
        return Names(self.codes, tuple(texts))


class CellColumns(Mapping[str, Sequence[object]]):
    """The cells of each column, by the source's name of the column."""

    def __init__(self, columns: Mapping[str, Sequence[object]]) -> None:
        self._columns = columns
        self._distinct: dict[str, DistinctCells] = {}
        self._combinations: dict[tuple[str, ...], int] = {}

    def __getitem__(self, name: str) -> Sequence[object]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def distinct(self, name: str) -> DistinctCells:
        """Return the distinct cells of a column."""
        if name not in self._distinct:
            self._distinct[name] = _distinct(self._columns[name])
        return self._distinct[name]

    def combined(self, names: Sequence[str]) -> Ints:
        """Return a number for each row that only rows with the same cells in all of these columns share."""
        codes = self.distinct(names[0]).codes
        for number, name in enumerate(names[1:]):
            if number:  # the products of the numbers of cells in more than two columns may be too large
                _, codes = np.unique(codes, return_inverse=True)
            column = self.distinct(name)
            codes = codes * len(column.cells) + column.codes
        return codes

    def combinations(self, names: Sequence[str]) -> int:
        """Return in how many ways the cells of these columns are combined."""
        key = tuple(names)
        if key not in self._combinations:
            self._combinations[key] = distinct(self.combined(names))
        return self._combinations[key]


def _distinct(cells: Sequence[object]) -> DistinctCells:
    cell_list: Any = cells.tolist() if isinstance(cells, np.ndarray) else cells
    types = {*map(type, cell_list)}
    try:
        if len(types) > 1 and not types <= _ALIKE:
            codes, typed = numbered([*zip(map(type, cell_list), cell_list, strict=True)])
            return DistinctCells(codes, [cell for _, cell in typed])
        return DistinctCells(*numbered(cell_list))
    except TypeError:  # a cell that cannot be hashed, such as a list
        return DistinctCells(np.arange(len(cell_list)), cell_list)


def outcomes(columns: CellColumns, name: str, read: Callable[[object, int], float | None]) -> Floats:
    """Return the outcomes in a column, NaN for a lost run; `read` returns the one in a cell with this first row."""
    plain_numbers = _plain_numbers(columns[name])
    if plain_numbers is not None:
        return plain_numbers
    column = columns.distinct(name)
    values = []
    for cell, row in column.with_first_rows():
        value = read(cell, row)
        if value is None:
            value = np.nan
        values.append(value)
    return np.array(values, dtype=np.float64)[column.codes]


def _plain_numbers(cells: Sequence[object]) -> Floats | None:
    """Return the numbers in cells of digits, NaN for an empty one; None if a cell needs a closer look."""
    texts: Any = cells
    try:
        joined = "\n".join(texts)
    except TypeError:
        if {*map(type, texts)} != {float}:
            return None
        numbers = np.array(texts, dtype=np.float64)
    else:
        if not _DIGITS.fullmatch(joined):
            return None
        try:
            written_texts = [text or "nan" for text in texts] if "" in texts else texts
            numbers = np.fromiter(map(float, written_texts), dtype=np.float64, count=len(texts))
        except ValueError:
            return None
    if np.any(np.abs(numbers) > LARGEST_OUTCOME):
        return None
    return numbers + 0.0  # turns -0.0 into 0.0
