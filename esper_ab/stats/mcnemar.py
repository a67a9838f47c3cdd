"""McNemar's exact test: do the discordant pairs favour one group?"""

from __future__ import annotations

import math


def mcnemar_p(x: int, y: int) -> float:
    """Return the two-sided exact p of x discordant pairs in favour of a and y in favour of b."""
    pairs = x + y
    as_unequal = sum(math.comb(pairs, k) for k in range(min(x, y) + 1))
    return min(1.0, float(2 * as_unequal / 2**pairs))
