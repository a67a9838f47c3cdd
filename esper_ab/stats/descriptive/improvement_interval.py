"""A small-sample interval for the probability of improvement.

It contains the values t with |A12 - t| <= z sqrt(t (1 - t) / n), which is Wilson's (1927) interval with n trials. The
variance of A12 for two samples of size n is at most t (1 - t) / n for any distributions (van Dantzig 1951; Birnbaum &
Klose 1957), and smaller if the runs of a pair correlate positively. So the interval keeps its coverage even if runs are
few or the groups do not overlap; if the groups overlap, the interval is wider than necessary. The coverage is reduced
by negative correlation within pairs.
"""

from __future__ import annotations

import msgspec
from numpy.typing import ArrayLike

from esper_ab.stats.descriptive.improvement import probability_of_improvement
from esper_ab.stats.distributions import norm_isf
from esper_ab.stats.statistic import Statistic
from esper_ab.stats.text import percent
from esper_ab.stats.wilson import wilson

LEVEL = 0.95


class ImprovementInterval(msgspec.Struct, frozen=True, kw_only=True):
    """P(a run of a is better than a run of b) + P(equal) / 2, with its 95 % interval."""

    a12: float
    low: float
    high: float


def improvement_interval(a: ArrayLike, b: ArrayLike) -> ImprovementInterval:
    """Compute the probability of improvement of a over b [pairs], with its interval."""
    improvement = probability_of_improvement(a, b)
    z = float(norm_isf((1.0 - LEVEL) / 2.0))
    low, high = wilson(improvement.a12, improvement.pairs, z)
    return ImprovementInterval(a12=improvement.a12, low=max(0.0, low), high=min(1.0, high))


STATISTIC = Statistic[ImprovementInterval](
    label="P(improvement)",
    kind="effect",
    place=2,
    orders=True,
    compute=lambda a, b, _: improvement_interval(a, b),
    show=lambda result, _: f"{result.a12:.2f}, {result.low:.2f} to {result.high:.2f} ({percent(LEVEL)})",
)
