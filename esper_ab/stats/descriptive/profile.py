"""The performance profile of each group: the share of its runs above each of several outcomes, with a pointwise band.

It is the run-score distribution of rliable (Agarwal et al. 2021) on one task. The band is that of the percentile
bootstrap over the runs of a group: a resampled share is binomial, so no number needs to be drawn.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import binomial_ppf
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.statistic import ComparisonContext, Statistic

LEVEL = 0.95
_STEPS = 10  # between the least and the greatest outcome
_SHOWN = (3, 5, 7)  # thresholds in the text


class ShareAbove(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of runs above each threshold, with the limits of their 95 % percentile bootstrap; all [thresholds]."""

    shares: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


class PerformanceProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The profiles of both groups at common thresholds, from the least to the greatest outcome in equal steps."""

    thresholds: tuple[float, ...]
    a: ShareAbove
    b: ShareAbove


def profile(a: ArrayLike, b: ArrayLike) -> PerformanceProfile:
    """Compute the profiles of a [n] and b [m]; n, m > 0."""
    all_runs = np.concatenate((floats(a), floats(b)))
    thresholds = np.linspace(all_runs.min(), all_runs.max(), _STEPS + 1)
    return PerformanceProfile(thresholds=_tuple(thresholds), a=share_above(a, thresholds), b=share_above(b, thresholds))


def share_above(runs: ArrayLike, thresholds: ArrayLike) -> ShareAbove:
    """Compute the share of `runs` [n > 0] above each of `thresholds`, with its band."""
    ordered_runs = np.sort(floats(runs))
    n = int(ordered_runs.size)
    counts_below = np.searchsorted(ordered_runs, floats(thresholds), side="right")
    shares = _tuple((n - counts_below) / n)
    tail = (1.0 - LEVEL) / 2.0
    low = tuple(binomial_ppf(tail, n, share) / n for share in shares)
    high = tuple(binomial_ppf(1.0 - tail, n, share) / n for share in shares)
    return ShareAbove(shares=shares, low=low, high=high)


def _tuple(values: Floats) -> tuple[float, ...]:
    return tuple(map(float, values))


def _show(result: PerformanceProfile, context: ComparisonContext) -> str:
    threshold_words = []
    for index in _SHOWN:
        threshold = f"{result.thresholds[index]:.{context.digits}f}"
        words_a = f"{context.a} {100.0 * result.a.shares[index]:.0f} %"
        words_b = f"{context.b} {100.0 * result.b.shares[index]:.0f} %"
        threshold_words.append(f"{threshold}: {words_a}, {words_b}")
    return f"runs above {'; '.join(threshold_words)}"


STATISTIC = Statistic[PerformanceProfile](
    label="profile",
    kind="effect",
    place=5,
    compute=lambda a, b, _: profile(a, b),
    show=_show,
    of_unpaired=True,
    of_binary=False,
)
