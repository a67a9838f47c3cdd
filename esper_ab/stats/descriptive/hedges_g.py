"""Hedges' g: the difference of means in standard deviations of runs, with the exact small-sample correction.

Hedges (1981), "Distribution theory for Glass's estimator of effect size": J = G(df/2) / (sqrt(df/2) G((df-1)/2)).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import floats, norm
from esper_ab.stats.pair import ROUNDING
from esper_ab.stats.statistic import Statistic


def correction(df: int) -> float:
    """Return the exact J for df >= 2 degrees of freedom."""
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def hedges_g(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return J (mean a - mean b) / pooled SD for a [n], b [m].

    Return None for fewer than 2 runs in a group, or if nothing varies.
    """
    x, y = floats(a), floats(b)
    if x.size < 2 or y.size < 2:
        return None
    df = int(x.size + y.size - 2)
    pooled = math.hypot(*(norm(side - side.mean()) for side in (x, y))) / math.sqrt(df)
    if pooled <= ROUNDING * float(np.max(np.abs(np.concatenate((x, y))))):
        return None
    return correction(df) * float(np.mean(x) - np.mean(y)) / pooled


STATISTIC = Statistic[float](
    label="Hedges' g", kind="effect", place=4, of_unpaired=True, compute=lambda a, b, _: hedges_g(a, b),
    show=lambda g, _: f"{g:+.2f} standard deviations of runs",
)  # fmt: skip
