"""The exact one-sided p of the signs of differences: how often chance alone would make their mean so large.

If a difference is as likely to be d as -d, every pattern of signs is equally likely. Nothing else is assumed about the
distribution. The sums of all patterns are those of one half of the differences plus those of the other, so sorting one
half counts 2^n patterns with 2^(n/2) searches.
"""

from __future__ import annotations

import numpy as np

from esper_ab.stats.floats import Floats

MAX_PAIRS = 40  # 2^20 sums per half
_TIE_TOLERANCE = 1e-12  # relative to the sum of |d|: sums that differ only by the order of addition count as ties


def one_sided_signs_p(differences: Floats) -> float:
    """Return for `differences` [n] the share of the 2^n sign patterns whose sum is at least as large.

    Raises ValueError if n exceeds MAX_PAIRS.
    """
    pairs = differences.size
    if pairs > MAX_PAIRS:
        raise ValueError(f"{pairs} differences have too many sign patterns; the most are {MAX_PAIRS}")
    sizes = np.abs(differences)
    least_sum = differences.sum() - _TIE_TOLERANCE * sizes.sum()
    first_sums = _sums(sizes[: pairs // 2])
    other_sums = np.sort(_sums(sizes[pairs // 2 :]))
    reaching = other_sums.size - np.searchsorted(other_sums, least_sum - first_sums)
    return float(reaching.sum()) / 2.0**pairs


def smallest_p(pairs: int) -> float:
    """Return the smallest p of so many pairs: that of the pattern in which all differences are positive."""
    return float(0.5**pairs)


def _sums(sizes: Floats) -> Floats:
    """Return the sums of `sizes` [n] under all patterns of signs, [2^n]."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate((sums + size, sums - size))
    return sums
