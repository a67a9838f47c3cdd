"""One pair of runs: the endpoints of two groups in one replicate. The unit of every test here."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.least_pairs import LEAST_PAIRS

SAME = 1e-6  # differences closer than this are one: the step of one sample in 10,000 hosts of 10,000 samples
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # a deviation this small beside the values is rounding


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints a and b, and the positions (lane and start order) of their runs in the block."""

    replicate: int
    a: float
    b: float
    position_a: int
    position_b: int


def alike(differences: ArrayLike) -> int:
    """How many of the differences [pairs] agree with one another, at most: the size of the largest set within SAME."""
    return commonest(differences)[0] if np.size(differences) else 0


def commonest(values: ArrayLike) -> tuple[int, float]:
    """Size of the largest set of values [n > 0] within SAME of one another, and the least of them."""
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    sizes = np.searchsorted(ordered, ordered + SAME, side="right") - np.arange(ordered.size)
    at = int(np.argmax(sizes))
    return int(sizes[at]), float(ordered[at])


def degenerate(differences: ArrayLike) -> bool:
    """Whether differences [pairs] are no sample that a test may be applied to, whatever they show.

    More than half are one and the same number, and fewer than LEAST_PAIRS are another: all claims would rest on those
    few, or, where there are none, on a deviation of zero. Rounding of a constant difference is no spread, either.
    """
    count, most = np.asarray(differences).size, alike(differences)
    return count > 1 and 2 * most > count and count - most < LEAST_PAIRS
