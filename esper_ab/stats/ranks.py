"""Ranks of values, where equal values share the mean of theirs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mid_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Rank `values` [n] from 1 to n; ranks are whole or halves, so no rounding can break a tie."""
    _, which, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2.0)[which])
