"""The smallest numbers of pairs that each kind of claim needs."""

from __future__ import annotations

LEAST_PAIRS = 6  # with fewer, no exact test could back a rejection at 5 %: 2 / 2^5 > 0.05
# With fewer pairs, a difference cannot be claimed to be smaller than the margin, because a collapse in 15 % of one
# group's runs is unseen in .85^R of experiments: 38 % with 6 pairs, 9 % with 15.
LEAST_EQUIVALENCE_PAIRS = 15
# With a look after every pair, no difference is called small before this number of pairs. Earlier, rare collapses that
# make a large difference would be missed more often than in a plan of 20 pairs (docs/evidence/rates.md).
LEAST_OPEN_ENDED_PAIRS = 25


def smallest_p(pairs: int) -> float:
    """Return the smallest two-sided p of an exact sign or rank test of `pairs` pairs: 2 of 2^pairs patterns."""
    return min(1.0, 2.0 * 0.5**pairs)


def unseen_rate(runs: int) -> float:
    """Return the rate of failures that strike none of `runs` runs with a chance of 5 %; rarer ones do so more often."""
    return float(1.0 - 0.05 ** (1.0 / runs))
