"""Percentile bootstrap intervals of two secondary numbers; descriptive only, no decision uses them.

Pairs are resampled, which preserves the correlation within a pair. Bootstrap intervals are honest from about ten runs:
below that their coverage is less than nominal (docs/statistics.md).
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from esper_ab.stats.paired_difference import differences

HONEST_FROM = 10  # runs per group
RESAMPLES = 10_000
LEVEL = 0.95
_TRIMMED = 0.25  # share of the runs cut at each end


class IQMDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Interquartile mean of a minus that of b, in points, with its 95 % percentile bootstrap interval."""

    mean: float
    low: float
    high: float
    honest: bool  # True with enough runs for the interval


class ImprovementInterval(msgspec.Struct, frozen=True, kw_only=True):
    """P(a run of a > a run of b) + P(equal) / 2, with its 95 % percentile bootstrap interval."""

    a12: float
    low: float
    high: float
    honest: bool


def with_level(text: str, honest: bool) -> str:
    """Add to an interval, in words, what it covers."""
    return f"{text} (95 %)" if honest else f"{text} (says 95 %, covers less: fewer than ten runs)"


def interquartile_mean(runs: ArrayLike) -> float:
    """Return the mean of the runs [n] without int(n / 4) of them at each end, as rliable does for a single task."""
    return float(_interquartile_means(np.asarray(runs, dtype=np.float64)[np.newaxis])[0])


def iqm_difference(a: ArrayLike, b: ArrayLike, rng: np.random.Generator) -> IQMDifference:
    """Compute the difference of interquartile means of a, b [pairs], in percent; at least 2 pairs."""
    n = _several(a, b)
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    drawn = rng.integers(0, n, (RESAMPLES, n))
    low, high = _limits(_interquartile_means(x[drawn]) - _interquartile_means(y[drawn]))
    mean = interquartile_mean(x) - interquartile_mean(y)
    return IQMDifference(mean=mean, low=low, high=high, honest=n >= HONEST_FROM)


def improvement_interval(a: ArrayLike, b: ArrayLike, rng: np.random.Generator) -> ImprovementInterval:
    """Compute the probability of improvement of a over b [pairs], with its interval; at least 2 pairs."""
    n = _several(a, b)
    across = np.subtract.outer(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    wins = (across > 0) + 0.5 * (across == 0)  # [n runs of a, n runs of b]
    counts = rng.multinomial(n, np.full(n, 1.0 / n), RESAMPLES).astype(np.float64)  # draws of each pair
    low, high = _limits(np.sum((counts @ wins) * counts, axis=1) / n**2)
    return ImprovementInterval(a12=float(np.mean(wins)), low=low, high=high, honest=n >= HONEST_FROM)


def _several(a: ArrayLike, b: ArrayLike) -> int:
    n = int(differences(a, b).size)
    if n < 2:
        raise ValueError("one pair cannot be resampled")
    return n


def _interquartile_means(runs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the interquartile mean of every row: [resamples, n] -> [resamples]."""
    n = runs.shape[1]
    cut = int(_TRIMMED * n)
    return np.asarray(np.sort(runs, axis=1)[:, cut : n - cut].mean(axis=1))


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(values, (tail, 1.0 - tail))
    return float(low), float(high)
