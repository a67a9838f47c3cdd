"""Wilson's (1927) interval of a proportion."""

from __future__ import annotations

import math


def wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return Wilson's limits for a proportion of `share` in n runs; the interval always contains `share`."""
    scale = 1.0 + z * z / n
    half = z * math.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    centre = share + z * z / (2.0 * n)
    low = (centre - half) / scale
    high = (centre + half) / scale
    return min(share, low), max(share, high)
