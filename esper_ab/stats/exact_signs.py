"""The exact p of the signs of differences, and the numbers of pairs at which a t-test needs it.

Under the null hypothesis, both signs of every difference are equally likely. The test makes no other assumption about
the distribution.
"""

from __future__ import annotations

import numpy as np

from esper_ab.stats.floats import Floats

MAX_PAIRS = 20  # 2^20 sign patterns are enumerated; beyond that they would be sampled, which is not exact
# Numbers of pairs at which the t alone claims too often if each run either learns or does not: up to 12.5 % if exactly
# one run of each pair learns (docs/evidence/rates.md). With 9 and 10 the t keeps its rate; with 6, the exact test would
# take a third of the power to correct an error rate of 7 %. Beyond MAX_PAIRS the p is not enumerated.
BACKED_BY_SIGNS = (7, 8, *range(11, MAX_PAIRS + 1))
BACKED = f"7, 8 or 11 to {MAX_PAIRS} pairs"  # the same in words
_TIE_TOLERANCE = 1e-12  # relative to the sum of |d|: sums that differ only by the order of addition count as ties


def signs_p(differences: Floats) -> Floats:
    """Return for `differences` [..., n] the share [...] of the 2^n sign patterns whose |sum| is at least as large.

    Raises ValueError if n exceeds MAX_PAIRS.
    """
    n = differences.shape[-1]
    if n > MAX_PAIRS:
        raise ValueError(f"{n} differences have too many sign patterns; the most are {MAX_PAIRS}")
    d = np.abs(differences)
    # The sign of the first difference is kept: |sum| is the same for a pattern and its mirror image. [..., 2^(n-1)]
    sums = d[..., :1]
    for place in range(1, n):
        size = d[..., place, None]
        sums = np.concatenate((sums + size, sums - size), axis=-1)
    observed_sum = np.abs(differences.sum(axis=-1, keepdims=True))
    least_sum = observed_sum - _TIE_TOLERANCE * d.sum(axis=-1, keepdims=True)
    return np.asarray((np.abs(sums) >= least_sum).mean(axis=-1))
