"""Ranks of values, where equal values share the mean of theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats


def mid_ranks(values: ArrayLike) -> Floats:
    """Rank `values` [n] from 1 to n; ranks are whole or halves, so no rounding can break a tie."""
    _, which, counts = np.unique(floats(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[which])
