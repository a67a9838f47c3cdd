"""Percentile bootstrap intervals of two secondary numbers. Descriptive: nothing is decided by them.

Pairs are resampled, so that what the runs of a pair share stays together. Bootstrap intervals are honest from about ten
runs: below, they cover less than they say (docs/statistics.md). Knows no names and no verdicts.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from esper_ab.stats.paired_difference import differences

HONEST_FROM = 10  # runs per group
WARNING = "bootstrap intervals are honest from about ten runs"
RESAMPLES = 10_000
LEVEL = 0.95
_TRIMMED = 0.25  # of the runs, at each end


class IQMDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Interquartile mean of a minus that of b, in points, with its 95 % percentile bootstrap interval."""

    mean: float
    low: float
    high: float
    honest: bool  # whether there are enough runs for the interval


class ImprovementInterval(msgspec.Struct, frozen=True, kw_only=True):
    """P(a run of a > a run of b) + P(equal) / 2, with its 95 % percentile bootstrap interval."""

    a12: float
    low: float
    high: float
    honest: bool


def interquartile_mean(runs: ArrayLike) -> float:
    """Mean of the runs [n] without int(n / 4) of them at each end: what rliable gives for a single task."""
    return float(_interquartile_means(np.asarray(runs, dtype=np.float64)[np.newaxis])[0])


def iqm_difference(a: ArrayLike, b: ArrayLike, rng: np.random.Generator) -> IQMDifference:
    """a, b [pairs], in percent, 2 pairs at least."""
    n = _several(a, b)
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    drawn = rng.integers(0, n, (RESAMPLES, n))
    low, high = _limits(_interquartile_means(x[drawn]) - _interquartile_means(y[drawn]))
    mean = interquartile_mean(x) - interquartile_mean(y)
    return IQMDifference(mean=mean, low=low, high=high, honest=n >= HONEST_FROM)


def improvement_interval(a: ArrayLike, b: ArrayLike, rng: np.random.Generator) -> ImprovementInterval:
    """a, b [pairs], 2 pairs at least."""
    n = _several(a, b)
    across = np.subtract.outer(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    wins = (across > 0) + 0.5 * (across == 0)  # [n runs of a, n runs of b]
    counts = rng.multinomial(n, np.full(n, 1.0 / n), RESAMPLES).astype(np.float64)  # how often each pair was drawn
    low, high = _limits(np.sum((counts @ wins) * counts, axis=1) / n**2)
    return ImprovementInterval(a12=float(np.mean(wins)), low=low, high=high, honest=n >= HONEST_FROM)


def _several(a: ArrayLike, b: ArrayLike) -> int:
    n = int(differences(a, b).size)
    if n < 2:
        raise ValueError("one pair cannot be resampled")
    return n


def _interquartile_means(runs: NDArray[np.float64]) -> NDArray[np.float64]:
    """[resamples, n] -> [resamples]."""
    n = runs.shape[1]
    cut = int(_TRIMMED * n)
    return np.asarray(np.sort(runs, axis=1)[:, cut : n - cut].mean(axis=1))


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(values, (tail, 1.0 - tail))
    return float(low), float(high)
