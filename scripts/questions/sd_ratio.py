"""How much more one of two paired variables varies than the other, with the interval that their pairs allow."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

_LEAST = 3  # pairs


def sd_ratio(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> dict[str, float]:
    """SD of x over that of y, paired [n], and its limits `low` and `high` at confidence `level`.

    The limits are those ratios that the test of Pitman (1939) and Morgan (1939, Biometrika 31) does not reject: the sum
    and the difference of two variables are uncorrelated where these vary alike. ValueError below three pairs.
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if a.size < _LEAST:
        raise ValueError("a ratio of standard deviations needs three pairs")
    ratio, r = float(np.var(a, ddof=1) / np.var(b, ddof=1)), float(np.corrcoef(a, b)[0, 1])
    t = float(stats.t.ppf((1 + level) / 2, a.size - 2))
    k = 1 + 2 * (1 - r**2) * t**2 / (a.size - 2)
    root = math.sqrt(k**2 - 1)
    return {"ratio": math.sqrt(ratio), "low": math.sqrt(ratio * (k - root)), "high": math.sqrt(ratio * (k + root))}
