"""The skewness of a sample."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import floats, norm


def skewness(values: ArrayLike) -> float | None:
    """Return the third central moment / SD^3 of `values` [n > 0], denominators n; None if they do not vary."""
    x = floats(values)
    deviations = x - x.mean()
    sd = norm(deviations) / math.sqrt(x.size)
    if not sd > 0.0:
        return None
    return float(np.mean((deviations / sd) ** 3))
