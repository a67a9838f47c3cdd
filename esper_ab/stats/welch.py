"""Runs of two groups that share nothing: Welch's t, with the degrees of freedom of Satterthwaite.

Welch (1947); Satterthwaite (1946). Groups may differ in spread and in number. What it needs of the outcomes is that
the means are nearly normal; where one group is small and skewed, they are not (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.stats.distributions import t_isf, t_sf
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import commonest, resolution


class Welch(msgspec.Struct, frozen=True, kw_only=True):
    """Difference of two means with its t-test; fields that need a deviation are None where none can be had."""

    name = "Welch's t"
    runs_a: int
    runs_b: int
    mean: float
    se: float | None = None  # of the mean
    t: float | None = None
    df: float = 0.0
    p: float | None = None  # two-sided

    @property
    def degenerate(self) -> bool:
        """Whether several runs a group are no sample for a t: see `welch`."""
        return self.t is None and min(self.runs_a, self.runs_b) > 1

    def interval(self, p: float) -> tuple[float, float] | None:
        """Return the differences that the test does not reject at two-sided `p`; None without a t."""
        if self.se is None:
            return None
        half = float(t_isf(p / 2.0, self.df)) * self.se
        return self.mean - half, self.mean + half


def welch(a: Sequence[float], b: Sequence[float]) -> Welch | None:
    """Compare the means of a [n], b [m]; None where a group has no run.

    No test where neither group varies, and where more than half of all runs came to one and the same endpoint and fewer
    than LEAST_PAIRS to another: a claim would rest on those few.
    """
    if not a or not b:
        return None
    none = Welch(runs_a=len(a), runs_b=len(b), mean=math.fsum(a) / len(a) - math.fsum(b) / len(b))
    everything = [*a, *b]
    most = commonest(everything, resolution(everything))[0]
    if min(len(a), len(b)) < 2 or (2 * most > len(everything) and len(everything) - most < LEAST_PAIRS):
        return none
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]  # of the squared error of the difference
    se = math.sqrt(math.fsum(parts))
    if max(np.ptp(a), np.ptp(b)) <= resolution(everything):
        return none
    t, shares = none.mean / se, [part / math.fsum(parts) for part in parts]
    df = 1.0 / math.fsum(share**2 / (len(side) - 1) for share, side in zip(shares, (a, b), strict=True))
    return msgspec.structs.replace(none, se=se, t=t, df=df, p=float(2.0 * t_sf(abs(t), df)))
