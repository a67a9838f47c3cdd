"""How many pairs would resolve a difference of a given size: from the spread of the pairs, never from their mean.

Power of the two-sided paired t by the noncentral t distribution; the range comes from the chi-square limits of the SD.
"""

from __future__ import annotations

import math

import msgspec
from scipy import stats

POWER = 0.8
_SD_LIMITS = 0.8  # confidence of the range
_MOST = 100_000


class PairsNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """Pairs for 80 % power at `margin` points, and their number at the 80 % limits of the SD."""

    margin: float
    alpha: float
    pairs: int
    low: int
    high: int


def power(sd: float, margin: float, pairs: int, alpha: float) -> float:
    """P(two-sided paired t rejects at alpha | true mean difference = margin, SD of differences = sd)."""
    df, shift = pairs - 1, margin * math.sqrt(pairs) / sd
    bound = float(stats.t.ppf(1.0 - alpha / 2.0, df))
    # The far tail is left out: where it matters, it would add rejections in the wrong direction.
    return float(stats.nct.sf(bound, df, shift))


def _least(sd: float, margin: float, alpha: float) -> int:
    low, high = 2, 4
    while power(sd, margin, high, alpha) < POWER and high < _MOST:
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if power(sd, margin, middle, alpha) >= POWER else (middle + 1, high)
    return low


def pairs_needed(sd: float, df: int, margin: float, alpha: float = 0.05) -> PairsNeeded:
    """sd > 0: standard deviation of the differences with df degrees of freedom; margin > 0 in the same unit."""
    tail = (1.0 - _SD_LIMITS) / 2.0
    sd_low = sd * math.sqrt(df / float(stats.chi2.ppf(1.0 - tail, df)))
    sd_high = sd * math.sqrt(df / float(stats.chi2.ppf(tail, df)))
    return PairsNeeded(
        margin=margin,
        alpha=alpha,
        pairs=_least(sd, margin, alpha),
        low=_least(sd_low, margin, alpha),
        high=_least(sd_high, margin, alpha),
    )
