"""The Mann-Whitney U test: does one group's runs rank above the other's? It ignores pairs.

U counts the combinations of a run of a with a run of b in which a is higher; equal outcomes count one half (Mann &
Whitney 1947). U / (n m) is the common-language effect (McGraw & Wong 1992). p is that of scipy.stats.mannwhitneyu. The
test must not be used on pooled episodes, because the episodes of one run are not independent
(docs/evidence/rates.md).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import accumulate

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import norm_sf
from esper_ab.stats.floats import Ints, floats
from esper_ab.stats.ranks import mid_ranks
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import p_text

_EXACT_COMBINATIONS = 10_000  # of 100 and 100 runs; with more, counting takes seconds, and the normal p is close


class MannWhitney(msgspec.Struct, frozen=True, kw_only=True):
    """The U of a, the two-sided p, and U as a share of all combinations of runs."""

    u: float
    p: float
    exact: bool  # False: p comes from the normal approximation, with corrections for ties and continuity
    ties: bool  # whether two of all outcomes are equal
    effect: float  # P(a run of a is higher than one of b) + P(equal) / 2


def mann_whitney(a: ArrayLike, b: ArrayLike) -> MannWhitney:
    """Test a [n] against b [m]; n, m > 0. p is exact without ties and with at most 10,000 combinations of runs."""
    x = floats(a)
    y = floats(b)
    n = x.size
    m = y.size
    ranks = mid_ranks(np.concatenate((x, y)))
    combinations = n * m
    u = float(np.sum(ranks[:n])) - n * (n + 1) / 2.0
    _, tie_counts = np.unique(ranks, return_counts=True)
    ties = tie_counts.size < ranks.size
    exact = not ties and combinations <= _EXACT_COMBINATIONS
    smaller_u = min(u, combinations - u)
    if exact:
        p = _exact(int(smaller_u), n, m)
    else:
        p = _normal(smaller_u, n, m, tie_counts)
    return MannWhitney(u=u, p=p, exact=exact, ties=ties, effect=u / combinations)


def _exact(smaller_u: int, n: int, m: int) -> float:
    """Return twice the share of all orders of n + m runs in which U is at most `smaller_u`."""
    orders = _orders(min(n, m), max(n, m))
    return min(1.0, 2 * orders[smaller_u] / math.comb(n + m, n))


@lru_cache(maxsize=64)
def _orders(n: int, m: int) -> tuple[int, ...]:
    """Return, for u = 0, ..., n m // 2, the number of orders of n and m runs with U <= u.

    The orders with U = u are the coefficients of the Gaussian binomial: the product of (1 - q^(m+i)) / (1 - q^i), i =
    1, ..., n.
    """
    counts = [1] + [0] * (n * m // 2)
    for i in range(1, n + 1):
        for u in range(len(counts) - 1, m + i - 1, -1):
            counts[u] -= counts[u - m - i]
        for u in range(i, len(counts)):
            counts[u] += counts[u - i]
    return tuple(accumulate(counts))


def _normal(smaller_u: float, n: int, m: int, tie_counts: Ints) -> float:
    """Return the two-sided p of the normal approximation, with corrections for continuity and for `tie_counts` runs.

    `tie_counts`: how many runs share each rank.
    """
    runs = n + m
    tie_correction = float(np.sum(tie_counts.astype(np.float64) ** 3 - tie_counts)) / (runs * (runs - 1))
    variance = n * m / 12.0 * (runs + 1 - tie_correction)
    if variance <= 0.0:  # all outcomes are equal
        return 1.0
    z = (n * m / 2.0 - smaller_u - 0.5) / math.sqrt(variance)
    return min(1.0, 2.0 * float(norm_sf(z)))


def _show(result: MannWhitney, context: ComparisonContext) -> str:
    if result.exact:
        kind = "exact"
    elif result.ties:
        kind = "normal approximation, corrected for ties"
    else:
        kind = "normal approximation, many runs"
    if context.paired:
        use = "it ignores the pairs; made for unpaired runs"
    else:
        use = "the usual rank test of unpaired runs"
    return (
        f"U = {result.u:g}, p {p_text(result.p)} ({kind}); {context.a} is higher than {context.b} in "
        f"{100.0 * result.effect:.0f} % of combinations of runs; {use} (--unpaired)"
    )


STATISTIC = Statistic[MannWhitney](
    label="Mann-Whitney U",
    kind="test",
    place=4,
    compute=lambda a, b, _: mann_whitney(a, b),
    show=_show,
    of_unpaired=True,
)
