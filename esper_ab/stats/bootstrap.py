"""Percentile bootstrap over pairs, for intervals of descriptive statistics.

Resampling pairs preserves the correlation within them. Bootstrap intervals are honest from about ten runs: below that
their coverage is less than nominal (docs/statistics.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats
from esper_ab.stats.paired_difference import differences

HONEST_FROM = 10  # runs per group
RESAMPLES = 10_000
LEVEL = 0.95


def several(a: ArrayLike, b: ArrayLike) -> int:
    """Return the number of pairs; ValueError for one, which cannot be resampled."""
    n = int(differences(a, b).size)
    if n < 2:
        raise ValueError("one pair cannot be resampled")
    return n


def limits(values: Floats) -> tuple[float, float]:
    """Return the percentile interval of a statistic's values [resamples] at LEVEL."""
    tail = (1.0 - LEVEL) / 2.0
    low, high = np.quantile(values, (tail, 1.0 - tail))
    return float(low), float(high)


def with_level(text: str, honest: bool) -> str:
    """Add to an interval, in words, what it covers."""
    return f"{text} (95 %)" if honest else f"{text} (says 95 %, covers less: fewer than ten runs)"
