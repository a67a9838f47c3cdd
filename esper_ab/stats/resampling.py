"""What the bootstraps of interquartile means have in common: their level, and how many resamples are drawn at a time.

Bootstrap intervals are honest from about ten runs: with fewer, their coverage is less than nominal
(docs/evidence/rates.md).
"""

from __future__ import annotations

from collections.abc import Iterator

LEVEL = 0.95
TAILS = ((1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0)
Z = 1.959963984540054  # the normal quantile of the upper tail
NORMAL_FROM = 20_000  # runs per group, from which on the normal interval replaces the bootstrap
HONEST_FROM = 10  # runs per group
_MOST_DRAWS = 200_000_000
_LEAST_RESAMPLES = 500
_DRAWS_AT_ONCE = 1 << 21  # bounds the memory; the numbers drawn do not depend on it


def batches(resamples: int, runs: int) -> Iterator[int]:
    """Yield how many resamples of `runs` runs to draw at a time.

    They add up to `resamples` or, among very many runs, whose resamples differ little, to fewer.
    """
    count = max(_LEAST_RESAMPLES, min(resamples, _MOST_DRAWS // runs))
    batch_size = max(1, _DRAWS_AT_ONCE // runs)
    for start in range(0, count, batch_size):
        yield min(batch_size, count - start)
