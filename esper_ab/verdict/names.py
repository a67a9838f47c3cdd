"""A column of names as numbers: equal names have one number, so that rows are compared without reading text. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, count
from typing import TypeVar

import numpy as np

from esper_ab.stats.floats import Bools, Ints

Cell = TypeVar("Cell")
_WHOLE = re.compile(r"-?[0-9]+(?:\n-?[0-9]+)*")  # one in each line


@dataclass(frozen=True, eq=False)
class Names:
    """The names of all rows. Every name occurs, and they are in the order of their first rows."""

    codes: Ints  # [rows], the place of each row's name in `names`
    names: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Names:
        """Return these names, one per row."""
        codes, distinct_names = numbered(list(names))
        return cls(codes, tuple(distinct_names))

    @classmethod
    def in_blocks(cls, blocks: Sequence[Sequence[str]]) -> Names:
        """Return the names of all rows of several blocks; a block that occurs again is looked at once."""
        by_identity = {id(block): block for block in blocks}
        codes, distinct_names = numbered([*chain.from_iterable(by_identity.values())])
        ends = np.cumsum([len(block) for block in by_identity.values()])
        codes_of = dict(zip(by_identity, np.split(codes, ends[:-1]), strict=True))
        return cls(np.concatenate([codes_of[id(block)] for block in blocks]), tuple(distinct_names))

    @classmethod
    def same(cls, name: str, rows: int) -> Names:
        """Return one name for all rows."""
        return cls(np.zeros(rows, dtype=np.int64), (name,) if rows else ())

    @cached_property
    def code_of(self) -> dict[str, int]:
        """The number of each name."""
        return dict(zip(self.names, range(len(self.names)), strict=True))

    def __getitem__(self, row: int) -> str:
        return self.names[int(self.codes[row])]

    @cached_property
    def alphabetical(self) -> tuple[str, ...]:
        """The names in alphabetical order."""
        return tuple(sorted(self.names))

    @cached_property
    def whole(self) -> bool:
        """True if all names are whole numbers in digits."""
        return not self.names or _WHOLE.fullmatch("\n".join(self.names)) is not None

    @cached_property
    def in_order(self) -> tuple[str, ...]:
        """The names in the order of their numbers if all are whole numbers, else in alphabetical order."""
        if self.whole:
            return tuple(sorted(self.alphabetical, key=int))
        return self.alphabetical

    @property
    def ranks(self) -> Ints:
        """The place of each row's name in alphabetical order [rows]."""
        rank_of_names = np.empty(len(self.names), dtype=np.int64)
        rank_of_names[[self.code_of[name] for name in self.alphabetical]] = np.arange(len(self.names))
        return np.asarray(rank_of_names[self.codes], dtype=np.int64)

    def of_rows(self, rows: Ints | slice = slice(None)) -> list[str]:
        """Return the name of each of these rows."""
        return list(map(self.names.__getitem__, self.codes[rows].tolist()))

    def among(self, names: Collection[str]) -> Bools:
        """Return whether the name of each row is one of `names` [rows]."""
        wanted_names = frozenset(names)
        wanted_mask = np.fromiter((name in wanted_names for name in self.names), dtype=np.bool_, count=len(self.names))
        return np.asarray(wanted_mask[self.codes], dtype=np.bool_)

    def taken(self, rows: Ints | Bools | slice) -> Names:
        """Return the names of these rows."""
        codes = self.codes[rows]
        first_row_of_code = first_rows(codes, len(self.names))
        kept_codes = np.flatnonzero(first_row_of_code < codes.size)
        kept_codes = kept_codes[np.argsort(first_row_of_code[kept_codes])]
        renumbered = np.zeros(len(self.names), dtype=np.int64)
        renumbered[kept_codes] = np.arange(kept_codes.size)
        return Names(renumbered[codes], tuple(self.names[code] for code in kept_codes.tolist()))

    def renamed(self, new_name: Callable[[str], str]) -> Names:
        """Return the names with `new_name` applied to each; names that become equal have one number."""
        codes, distinct_names = numbered([new_name(name) for name in self.names])
        return Names(codes[self.codes], tuple(distinct_names))


def numbered(cells: Sequence[Cell]) -> tuple[Ints, list[Cell]]:
    """Number the distinct cells by their first rows; return the number of each cell [rows], and the distinct cells."""
    number: defaultdict[Cell, int] = defaultdict(count().__next__)  # a new cell gets the next number
    codes = np.fromiter(map(number.__getitem__, cells), dtype=np.int64, count=len(cells))
    return codes, list(number)


def first_rows(codes: Ints, number: int) -> Ints:
    """Return the first row of each code below `number`, and the number of rows for a code that does not occur."""
    first_row_of_code = np.full(number, codes.size, dtype=np.int64)
    first_row_of_code[codes[::-1]] = np.arange(
        codes.size - 1, -1, -1
    )  # of several rows with one code, the last write stays
    return first_row_of_code
