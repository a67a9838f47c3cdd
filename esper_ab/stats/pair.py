"""Pairs of runs, with the outcomes of two groups in one replicate each: the units of every test of paired runs.

Outcomes are kept in columns, because there may be a million of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec
import numpy as np

from esper_ab.stats.floats import Bools, Floats, Ints


class Pair(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Outcomes a and b, and the positions (device and start order) of their runs in the block."""

    replicate: int
    a: float
    b: float
    position_a: int
    position_b: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Pairs(Sequence[Pair]):
    """Pairs in columns, all [pairs]; a `Pair` is made only where one is asked for."""

    replicate: Ints
    a: Floats
    b: Floats
    position_a: Ints
    position_b: Ints

    @classmethod
    def of(cls, pairs: Iterable[Pair]) -> Pairs:
        """Return these pairs in columns."""
        listed_pairs = list(pairs)
        return cls(
            replicate=np.array([pair.replicate for pair in listed_pairs], dtype=np.int64),
            a=np.array([pair.a for pair in listed_pairs], dtype=np.float64),
            b=np.array([pair.b for pair in listed_pairs], dtype=np.float64),
            position_a=np.array([pair.position_a for pair in listed_pairs], dtype=np.int64),
            position_b=np.array([pair.position_b for pair in listed_pairs], dtype=np.int64),
        )

    @property
    def differences(self) -> Floats:
        """The difference a - b of each pair [pairs]."""
        return self.a - self.b

    @property
    def sides(self) -> Ints:
        """The positions of a and of b in each pair [pairs, 2]."""
        return np.stack((self.position_a, self.position_b), axis=1)

    def ordered(self) -> Pairs:
        """Return the pairs in the order of their replicates."""
        if np.all(self.replicate[1:] >= self.replicate[:-1]):
            return self
        return self.taken(np.argsort(self.replicate, kind="stable"))

    def taken(self, places: Ints | Bools | slice) -> Pairs:
        """Return the pairs at these places, in this order, or those for which a mask is True."""
        return Pairs(
            replicate=self.replicate[places],
            a=self.a[places],
            b=self.b[places],
            position_a=self.position_a[places],
            position_b=self.position_b[places],
        )

    def followed_by(self, others: Pairs) -> Pairs:
        """Return these pairs, then the others."""
        return Pairs(
            replicate=np.concatenate((self.replicate, others.replicate)),
            a=np.concatenate((self.a, others.a)),
            b=np.concatenate((self.b, others.b)),
            position_a=np.concatenate((self.position_a, others.position_a)),
            position_b=np.concatenate((self.position_b, others.position_b)),
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pairs) and all(map(np.array_equal, vars(self).values(), vars(other).values()))

    def __hash__(self) -> int:
        return hash(len(self))

    def __len__(self) -> int:
        return self.a.size

    def __iter__(self) -> Iterator[Pair]:
        columns = [column.tolist() for column in (self.replicate, self.a, self.b, self.position_a, self.position_b)]
        for replicate, a, b, position_a, position_b in zip(*columns, strict=True):
            yield Pair(replicate=replicate, a=a, b=b, position_a=position_a, position_b=position_b)

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> Pairs: ...
    def __getitem__(self, place: int | slice) -> Pair | Pairs:
        if isinstance(place, slice):
            return self.taken(place)
        return Pair(
            replicate=int(self.replicate[place]),
            a=float(self.a[place]),
            b=float(self.b[place]),
            position_a=int(self.position_a[place]),
            position_b=int(self.position_b[place]),
        )


NO_PAIRS = Pairs.of(())


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """The outcomes of two groups of unpaired runs; `len()` is the size of the smaller group."""

    a: Floats
    b: Floats
    # The replicate of each outcome, for runs whose looks were planned; None: all runs belong to every look.
    places_a: Ints | None = None
    places_b: Ints | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Samples) and all(map(np.array_equal, vars(self).values(), vars(other).values()))

    def __hash__(self) -> int:
        return hash(len(self))

    def __len__(self) -> int:
        return min(self.a.size, self.b.size)


Data = Pairs | Samples  # of one comparison; only `verdict.look.effect_of` chooses the test


def before(data: Data, replicates: int) -> Data:
    """Return the pairs of the first `replicates` replicates, in order; for unpaired data, return the runs of these.

    Unpaired runs without replicates are all returned.
    """
    if isinstance(data, Samples):
        return _samples_before(data, replicates)
    earlier = data.replicate < replicates
    return (data if earlier.all() else data.taken(earlier)).ordered()


def _samples_before(data: Samples, replicates: int) -> Samples:
    if data.places_a is None or data.places_b is None:
        return data
    earlier_a = data.places_a < replicates
    earlier_b = data.places_b < replicates
    return Samples(
        a=data.a[earlier_a],
        b=data.b[earlier_b],
        places_a=data.places_a[earlier_a],
        places_b=data.places_b[earlier_b],
    )


def outcomes(data: Data) -> tuple[Floats, Floats]:
    """Return the outcomes of both groups."""
    return data.a, data.b


def ends(data: Data) -> tuple[float, ...]:
    """Return the least and the greatest outcome of each group; () for a group without runs."""
    limits = [(float(side.min()), float(side.max())) for side in outcomes(data) if side.size]
    return tuple(value for of_group in limits for value in of_group)
