"""Wilson's (1927) interval of a proportion."""

from __future__ import annotations

import math


def wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return Wilson's limits for a proportion of `share` in n runs; they are in [0, 1] and enclose `share`."""
    scale = 1.0 + z * z / n
    half_width = z * math.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    centre = share + z * z / (2.0 * n)
    low = (centre - half_width) / scale
    high = (centre + half_width) / scale
    # Rounding may move a limit past the share, or past 0 or 1, by a few units in the last place.
    return max(min(share, low), 0.0), min(max(share, high), 1.0)
