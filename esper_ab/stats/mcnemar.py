"""McNemar's exact test: do the discordant pairs favour one group?"""

from __future__ import annotations

import math

from esper_ab.stats.distributions import binomial_cdf

_MOST_SUMMED = 2_000  # discordant pairs; a sum over more takes a time that grows with the square of their number


def mcnemar_p(x: int, y: int) -> float:
    """Return the two-sided exact p of x discordant pairs in favour of a and y in favour of b."""
    pairs = x + y
    if pairs > _MOST_SUMMED:
        return min(1.0, 2.0 * binomial_cdf(min(x, y), pairs, 0.5))
    extreme_sequences = sum(math.comb(pairs, k) for k in range(min(x, y) + 1))
    return min(1.0, float(2 * extreme_sequences / 2**pairs))
