"""Fisher's exact test: do unpaired runs of two groups succeed equally often?"""

from __future__ import annotations

import math


def fisher_p(x: int, n: int, y: int, m: int) -> float:
    """Return the two-sided exact p of x of n against y of m, summed over all tables at most as likely as this one.

    Likelihoods are compared as integers, so which tables count does not depend on rounding.
    """
    successes = x + y
    observed_ways = math.comb(n, x) * math.comb(m, y)
    all_tables = 0
    unlikely_tables = 0
    for k in range(max(0, successes - m), min(n, successes) + 1):
        ways = math.comb(n, k) * math.comb(m, successes - k)
        all_tables += ways
        if ways <= observed_ways:
            unlikely_tables += ways
    return float(unlikely_tables / all_tables)
