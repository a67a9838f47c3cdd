"""Mean of the paired differences with Student's t: the main estimate and its interval.

The unit is one pair of runs (one replicate), never an episode.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.adjusted_difference import AdjustedDifference, adjusted_difference
from esper_ab.stats.floats import Floats, two


class PairedDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of d = a - b over pairs. Fields that need a standard deviation are None if it is 0 or unknown."""

    pairs: int
    mean: float
    sd: float | None  # of the differences, n - 1 in the denominator; None with one pair; 0.0 if nothing varies
    se: float | None  # of the mean
    low: float | None
    high: float | None
    level: float  # confidence of [low, high]
    t: float | None
    df: int  # pairs - 1
    p: float | None  # two-sided

    @property
    def degenerate(self) -> bool:
        """True if there are several pairs, but no t-test is possible; see `pair.degenerate`."""
        return self.sd is not None and self.t is None


def differences(a: ArrayLike, b: ArrayLike) -> Floats:
    """Return a - b [pairs]; ValueError if a, b are not finite, one-dimensional, of equal length and non-empty."""
    x, y = two(a, b)
    if not x.size:
        raise ValueError("there must be at least one pair")
    return x - y


def paired_difference(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> PairedDifference:
    """Compute Student's paired t-test of a, b [pairs]: mean, interval at `level`, two-sided p with pairs - 1 df."""
    n = int(differences(a, b).size)
    adjusted_result = adjusted_difference(a, b, np.zeros((n, 2), dtype=np.int64), 1)
    assert adjusted_result is not None  # there are pairs, and one position only
    return without_positions(adjusted_result, level)


def without_positions(adjusted: AdjustedDifference, level: float) -> PairedDifference:
    """Return a difference that is adjusted for nothing as Student's paired t-test, with the interval at `level`."""
    low, high = adjusted.interval(1.0 - level) or (None, None)
    return PairedDifference(
        pairs=adjusted.pairs,
        mean=adjusted.mean,
        sd=adjusted.sd,
        se=adjusted.se,
        low=low,
        high=high,
        level=level,
        t=adjusted.t,
        df=adjusted.pairs - 1,
        p=adjusted.p,
    )
