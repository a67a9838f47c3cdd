"""Wilcoxon's signed-rank test of paired differences, with the Hodges-Lehmann estimate.

Differences of zero are dropped, and equal sizes share their mean rank (Wilcoxon 1945). p stays exact with ties: it is
the share of all sign patterns of the ranks that occurred. The estimate is the median of the Walsh averages (d_i + d_j)
/ 2, i <= j (Hodges & Lehmann 1963). Both assume that differences are symmetric, not that they are normal.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import norm_sf
from esper_ab.stats.floats import Floats
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.ranks import mid_ranks
from esper_ab.stats.rounding import resolution
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import p_text

_EXACT_PAIRS = 100  # of differences other than 0; with more, the normal approximation is close
_ESTIMATED_PAIRS = 2_000  # there are two million Walsh averages


class SignedRank(msgspec.Struct, frozen=True, kw_only=True):
    """The smaller one of the two rank sums, its two-sided p, and the Hodges-Lehmann estimate of the difference."""

    w: float
    pairs: int  # whose difference is not 0
    p: float  # 1.0 if there are none
    exact: bool  # False: p comes from the normal approximation, corrected for ties
    estimate: float | None  # None with more than 2,000 pairs


def signed_rank(a: ArrayLike, b: ArrayLike) -> SignedRank:
    """Test the differences of a, b [pairs > 0]; differences that differ by rounding only count as equal."""
    d = differences(a, b)
    equal_size = resolution(np.asarray(a), np.asarray(b))
    nonzero_differences = d[np.abs(d) > equal_size]
    ranks = _ranks(np.abs(nonzero_differences), equal_size)
    positive_sum = float(np.sum(ranks[nonzero_differences > 0.0]))
    negative_sum = float(np.sum(ranks[nonzero_differences < 0.0]))
    w = min(positive_sum, negative_sum)
    exact = nonzero_differences.size <= _EXACT_PAIRS
    p = _exact(w, ranks) if exact else _normal(w, ranks)
    estimate = None
    if d.size <= _ESTIMATED_PAIRS:
        estimate = hodges_lehmann(d)
    return SignedRank(w=w, pairs=int(nonzero_differences.size), p=p, exact=exact, estimate=estimate)


def hodges_lehmann(d: Floats) -> float:
    """Return the median of the Walsh averages of d [n > 0], including those of each value with itself."""
    rows, columns = np.triu_indices(d.size)
    return float(np.median(0.5 * d[rows] + 0.5 * d[columns]))


def _ranks(sizes: Floats, equal_size: float) -> Floats:
    """Return the ranks of `sizes` [n]; sizes without a gap larger than `equal_size` between them share a mean rank."""
    ranks = np.empty(sizes.size)
    if not sizes.size:
        return ranks
    order = np.argsort(sizes, kind="stable")
    gaps = np.diff(sizes[order]) > equal_size
    steps = np.concatenate(([0], np.cumsum(gaps)))
    ranks[order] = mid_ranks(steps)
    return ranks


def _exact(w: float, ranks: Floats) -> float:
    """Return twice the share of all sign patterns in which the ranks [n] of positive sign sum to `w` at most."""
    doubled_ranks = np.rint(2.0 * ranks).astype(np.int64)  # mean ranks are multiples of 1/2
    shares = np.zeros(int(doubled_ranks.sum()) + 1)
    shares[0] = 1.0
    for rank in doubled_ranks:
        shifted_shares = 0.5 * shares[: shares.size - rank]
        shares *= 0.5
        shares[rank:] += shifted_shares
    return min(1.0, 2.0 * math.fsum(shares[: round(2.0 * w) + 1]))


def _normal(w: float, ranks: Floats) -> float:
    n = ranks.size
    _, tie_counts = np.unique(ranks, return_counts=True)
    tie_correction = float(np.sum(tie_counts.astype(np.float64) ** 3 - tie_counts)) / 48.0
    variance = n * (n + 1) * (2 * n + 1) / 24.0 - tie_correction
    z = (n * (n + 1) / 4.0 - w) / math.sqrt(variance)
    return min(1.0, 2.0 * float(norm_sf(z)))


def _show(result: SignedRank, context: ComparisonContext) -> str:
    kind = "exact" if result.exact else "normal approximation"
    if result.estimate is None:
        estimate = ""
    else:
        estimate = f"; Hodges-Lehmann estimate {context.difference(result.estimate)}"
    return f"W = {result.w:g}, p {p_text(result.p)} ({kind}){estimate}"


STATISTIC = Statistic[SignedRank](
    label="signed rank",
    kind="test",
    place=2,
    compute=lambda a, b, _: signed_rank(a, b),
    show=_show,
    of_binary=False,
)
