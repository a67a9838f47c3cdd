"""Hedges' g: the difference of means in standard deviations of runs, with the exact small-sample correction.

Hedges (1981), "Distribution theory for Glass's estimator of effect size": J = G(df/2) / (sqrt(df/2) G((df-1)/2)). The
limits are J times those of the noncentral t (Hedges & Olkin 1985), exact for unpaired normal runs of one spread. Where
the runs of a pair correlate, they are wider than necessary.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.descriptive.cohens_d import cohens_d
from esper_ab.stats.distributions import nct_limits
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import percent

LEVEL = 0.95


class HedgesG(msgspec.Struct, frozen=True, kw_only=True):
    """g with its 95 % interval for unpaired runs."""

    g: float
    low: float
    high: float


def correction(df: int) -> float:
    """Return the exact J for df >= 2 degrees of freedom."""
    return math.exp(math.lgamma(df / 2) - math.lgamma((df - 1) / 2)) / math.sqrt(df / 2)


def hedges_g(a: ArrayLike, b: ArrayLike) -> HedgesG | None:
    """Compute J (mean a - mean b) / pooled SD for a [n], b [m].

    Return None for fewer than 2 runs in a group, or if nothing varies.
    """
    d = cohens_d(a, b)
    if d is None:
        return None
    n = np.size(a)
    m = np.size(b)
    root = math.sqrt(n * m / (n + m))
    df = n + m - 2
    low, high = nct_limits(d * root, df, LEVEL)
    j = correction(df)
    return HedgesG(g=j * d, low=j * low / root, high=j * high / root)


def _show(result: HedgesG, context: ComparisonContext) -> str:
    ignored_words = ", which ignores the pairs" if context.paired else ""
    interval = f"{result.low:+.2f} to {result.high:+.2f} ({percent(LEVEL)}{ignored_words})"
    return f"{result.g:+.2f} standard deviations of runs, {interval}"


STATISTIC = Statistic[HedgesG](
    label="Hedges' g",
    kind="effect",
    place=8,
    of_unpaired=True,
    compute=lambda a, b, _: hedges_g(a, b),
    show=_show,
)
