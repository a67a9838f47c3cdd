"""Wilcoxon signed-rank test of paired differences, with the Hodges-Lehmann estimate; no decision uses it.

Wilcoxon (1945); Hodges & Lehmann (1963): the estimate is the median of the Walsh averages (d_i + d_j) / 2, i <= j. The
test assumes that the differences are symmetric about one value, but not that they are normal. As in Wilcoxon's paper,
zero differences are dropped before ranking. Equal |d| share their mean rank. Even then, p is exact, because the
distribution of the rank sum is enumerated over all sign patterns of the observed ranks.
"""

from __future__ import annotations

import math
from functools import lru_cache

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import norm_sf
from esper_ab.stats.floats import Floats, mid_ranks
from esper_ab.stats.pair import resolution
from esper_ab.stats.t_tests import differences

_MOST_DECIMALS = 300  # 10 to a higher power could overflow
MAX_EXACT = 100  # non-zero differences; above it the tie-corrected normal approximation, with exact=False


class SignedRank(msgspec.Struct, frozen=True, kw_only=True):
    """The two-sided p of the rank sum, and the Hodges-Lehmann estimate."""

    p: float  # 1.0 when every difference is zero
    exact: bool
    estimate: float
    n: int  # differences that are not zero


def signed_rank(a: ArrayLike, b: ArrayLike) -> SignedRank:
    """Test a, b [pairs]; ValueError if they are not finite, one-dimensional, of equal length and non-empty."""
    d = _rounded(differences(a, b), resolution(a, b))
    rows, columns = np.triu_indices(d.size)
    estimate = float(np.median((d[rows] + d[columns]) / 2.0))  # of the Walsh averages
    kept = d[d != 0.0]
    n = int(kept.size)
    if n == 0:
        return SignedRank(p=1.0, exact=True, estimate=estimate, n=0)
    doubled = np.rint(2.0 * mid_ranks(np.abs(kept))).astype(np.int64)  # mid-ranks are halves
    smaller = min(int(doubled[kept > 0].sum()), int(doubled[kept < 0].sum()))
    if n > MAX_EXACT:
        return SignedRank(p=_normal_p(smaller / 2.0, doubled / 2.0), exact=False, estimate=estimate, n=n)
    law = _law(tuple(sorted(doubled.tolist())))
    return SignedRank(p=min(1.0, 2.0 * float(law[: smaller + 1].sum())), exact=True, estimate=estimate, n=n)


def _normal_p(smaller: float, ranks: Floats) -> float:
    """Return the two-sided p of the `smaller` rank sum by its normal approximation, with the variance of the ranks."""
    return min(1.0, 2.0 * float(norm_sf((ranks.sum() / 2.0 - smaller) / (np.sqrt(np.square(ranks).sum()) / 2.0))))


def _rounded(d: Floats, within: float) -> Floats:
    """Round d [pairs] to a hundredth of `within`, so that differences tie if they are equal except for rounding errors.
    """
    return np.round(d, min(_MOST_DECIMALS, 2 - math.ceil(math.log10(within)))) if within else d


@lru_cache(maxsize=256)
def _law(doubled: tuple[int, ...]) -> Floats:
    """Return P(sum of the doubled ranks with positive sign = 0, 1, …, their total) if both signs are equally likely."""
    law = np.zeros(sum(doubled) + 1)
    law[0] = 1.0
    for rank in doubled:
        law[rank:] = 0.5 * law[rank:] + 0.5 * law[: law.size - rank]
        law[:rank] *= 0.5
    return law
