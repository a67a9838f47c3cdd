"""A pair of runs, with the outcomes of two groups in one replicate. It is the unit of every test of paired runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import floats
from esper_ab.stats.least_pairs import LEAST_PAIRS

_SAME = 1e-10  # relative to the outcomes: far above the rounding error of a mean, below any measured step
_TINY = float(np.finfo(np.float64).tiny)  # smaller numbers have fewer digits
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # a deviation this small, relative to the values, is rounding


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Outcomes a and b, and the positions (device and start order) of their runs in the block."""

    replicate: int
    a: float
    b: float
    position_a: int
    position_b: int


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of two groups of unpaired runs; `len()` is the size of the smaller group."""

    a: tuple[float, ...]
    b: tuple[float, ...]

    def __len__(self) -> int:
        return min(len(self.a), len(self.b))


Data = Sequence[Pair] | Samples  # of one comparison; only `verdict.look.effect_of` chooses the test


def before(data: Data, replicates: int) -> tuple[Pair, ...] | Samples:
    """Return the pairs of the first `replicates` replicates, in order; for unpaired data, return all runs."""
    return data if isinstance(data, Samples) else tuple(
        sorted((pair for pair in data if pair.replicate < replicates), key=lambda pair: pair.replicate)
    )  # fmt: skip


def outcomes(data: Data) -> tuple[list[float], list[float]]:
    """Return the outcomes of both groups."""
    return (list(data.a), list(data.b)) if isinstance(data, Samples) else (
        [pair.a for pair in data], [pair.b for pair in data]
    )  # fmt: skip


def resolution(*outcomes: ArrayLike) -> float:
    """Return the distance within which outcomes [runs], or the differences of two groups [pairs], count as equal.

    It is relative to the lower quartile of the sizes of runs, or of the larger outcome of each pair, without zeros. So
    a few large outcomes, such as penalties, do not make all others equal.
    """
    sizes = np.abs(np.vstack(outcomes)).max(axis=0, initial=0.0)
    sizes = np.sort(sizes[sizes > 0.0])
    return max(_TINY, _SAME * float(sizes[(sizes.size - 1) // 4])) if sizes.size else 0.0


def alike(a: ArrayLike, b: ArrayLike) -> int:
    """Return the size of the largest set of equal differences of a, b [pairs]."""
    return commonest(np.subtract(a, b), resolution(a, b))[0] if np.size(a) else 0


def commonest(values: ArrayLike, within: float) -> tuple[int, float]:
    """Return the size and the least value of the largest set of `values` [n > 0] that span at most `within`."""
    ordered = np.sort(floats(values))
    sizes = np.searchsorted(ordered, ordered + within, side="right") - np.arange(ordered.size)
    at = int(np.argmax(sizes))
    return int(sizes[at]), float(ordered[at])


def degenerate(a: ArrayLike, b: ArrayLike) -> bool:
    """True if no test of the differences of a, b [pairs] is possible.

    This is the case if more than half of the differences are equal and fewer than LEAST_PAIRS have a different value,
    because a claim would then depend on these few, or on a standard deviation of 0. Differences that vary only by
    rounding errors count as equal.
    """
    count, most = np.size(a), alike(a, b)
    return count > 1 and 2 * most > count and count - most < LEAST_PAIRS
