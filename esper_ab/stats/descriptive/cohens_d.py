"""Cohen's d: the difference of means in pooled standard deviations of runs, without a small-sample correction.

Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences". Hedges' g corrects its bias.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import floats, norm
from esper_ab.stats.rounding import ROUNDING
from esper_ab.stats.statistic import Statistic


def cohens_d(a: ArrayLike, b: ArrayLike) -> float | None:
    """Return (mean a - mean b) / pooled SD for a [n], b [m].

    Return None for fewer than 2 runs in a group, or if nothing varies.
    """
    x = floats(a)
    y = floats(b)
    if x.size < 2 or y.size < 2:
        return None
    df = int(x.size + y.size - 2)
    spread = math.hypot(norm(x - x.mean()), norm(y - y.mean()))
    pooled_sd = spread / math.sqrt(df)
    largest_value = float(np.max(np.abs(np.concatenate((x, y)))))
    if pooled_sd <= ROUNDING * largest_value:
        return None
    return float(np.mean(x) - np.mean(y)) / pooled_sd


STATISTIC = Statistic[float](
    label="Cohen's d",
    kind="effect",
    place=6,
    of_unpaired=True,
    compute=lambda a, b, _: cohens_d(a, b),
    show=lambda d, _: f"{d:+.2f} standard deviations of runs, uncorrected",
)
