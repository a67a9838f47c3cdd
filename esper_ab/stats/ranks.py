"""Ranks of values, where equal values share the mean of theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats


def mid_ranks(values: ArrayLike) -> Floats:
    """Rank `values` [n] from 1 to n. Ties share their mean rank, which is exact as a multiple of 1/2."""
    _, value_index, counts = np.unique(floats(values), return_inverse=True, return_counts=True)
    last_ranks = np.cumsum(counts)
    mean_ranks = last_ranks - (counts - 1) / 2.0
    return np.asarray(mean_ranks[value_index])
