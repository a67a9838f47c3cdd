"""A pair of runs, with the outcomes of two groups in one replicate. It is the unit of every test of paired runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Pair(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Outcomes a and b, and the positions (device and start order) of their runs in the block."""

    replicate: int
    a: float
    b: float
    position_a: int
    position_b: int


class Samples(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcomes of two groups of unpaired runs; `len()` is the size of the smaller group."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    # The replicate of each outcome, for runs whose looks were planned; (): all runs belong to every look.
    places_a: tuple[int, ...] = ()
    places_b: tuple[int, ...] = ()

    def __len__(self) -> int:
        return min(len(self.a), len(self.b))


Data = Sequence[Pair] | Samples  # of one comparison; only `verdict.look.effect_of` chooses the test


def before(data: Data, replicates: int) -> tuple[Pair, ...] | Samples:
    """Return the pairs of the first `replicates` replicates, in order; for unpaired data, return the runs of these.

    Unpaired runs without replicates are all returned.
    """
    if isinstance(data, Samples):
        return _samples_before(data, replicates)
    pairs = [pair for pair in data if pair.replicate < replicates]
    pairs.sort(key=lambda pair: pair.replicate)
    return tuple(pairs)


def _samples_before(data: Samples, replicates: int) -> Samples:
    if not data.places_a and not data.places_b:
        return data
    earlier = [(place, value) for place, value in zip(data.places_a, data.a, strict=True) if place < replicates]
    earlier_b = [(place, value) for place, value in zip(data.places_b, data.b, strict=True) if place < replicates]
    return Samples(
        a=tuple(value for _, value in earlier),
        b=tuple(value for _, value in earlier_b),
        places_a=tuple(place for place, _ in earlier),
        places_b=tuple(place for place, _ in earlier_b),
    )


def outcomes(data: Data) -> tuple[list[float], list[float]]:
    """Return the outcomes of both groups."""
    if isinstance(data, Samples):
        return (list(data.a), list(data.b))
    return ([pair.a for pair in data], [pair.b for pair in data])
