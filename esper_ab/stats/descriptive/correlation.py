"""The correlation within pairs, and the reduction of variance by pairing.

Pearson's r has Fisher's (1921) interval, tanh(atanh r -+ z / sqrt(n - 3)). The worth of a pair follows from variances,
not from r. The difference of independent runs has the variance s2_a + s2_b, and the difference within pairs has the
variance s2_d = s2_a + s2_b - 2 r s_a s_b. The ratio of these variances is the efficiency of pairing (Snedecor & Cochran
1989, paired against independent samples). It is 1 / (1 - r) if the groups have equal variances, and otherwise closer
to 1.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.correlation import pearson_of_deviations
from esper_ab.stats.distributions import norm_isf
from esper_ab.stats.floats import Floats, exact_sum, floats, norm
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.rounding import ROUNDING
from esper_ab.stats.statistic import ComparisonContext, Statistic

LEVEL = 0.95


class PairCorrelation(msgspec.Struct, frozen=True, kw_only=True):
    """The correlation r of the outcomes within pairs, with its 95 % interval, which assumes joint normality."""

    r: float
    low: float | None  # None with fewer than 4 pairs, or when r is 1 or -1
    high: float | None
    worth: float | None  # (s2_a + s2_b) / s2_d: unpaired runs per group that a pair is worth; None: s2_d is 0


def pair_correlation(a: ArrayLike, b: ArrayLike) -> PairCorrelation | None:
    """Compute the correlation within pairs of a, b [pairs]; None if there are fewer than 3 pairs or nothing varies."""
    n = int(differences(a, b).size)
    x = floats(a)
    y = floats(b)
    if n < 3 or not (_varies(x, x) and _varies(y, y)):
        return None
    dx = x - exact_sum(x) / n
    dy = y - exact_sum(y) / n
    r = pearson_of_deviations(dx, dy)
    if _varies(dx - dy, x, y):
        pair_worth = (math.hypot(norm(dx), norm(dy)) / norm(dx - dy)) ** 2
    else:
        pair_worth = None
    if n < 4 or abs(r) >= 1.0 - ROUNDING:
        return PairCorrelation(r=r, low=None, high=None, worth=pair_worth)
    half_width = float(norm_isf((1.0 - LEVEL) / 2.0)) / math.sqrt(n - 3)
    centre = math.atanh(r)
    return PairCorrelation(
        r=r, low=math.tanh(centre - half_width), high=math.tanh(centre + half_width), worth=pair_worth
    )


def _varies(values: Floats, *scale: Floats) -> bool:
    """True if `values` vary by more than rounding errors of numbers as large as those in `scale`."""
    largest_value = max(float(np.max(np.abs(numbers))) for numbers in scale)
    return float(np.std(values)) > ROUNDING * largest_value


def _show(result: PairCorrelation, _: ComparisonContext) -> str:
    text = f"{result.r:+.2f}"
    if result.low is not None and result.high is not None:
        text += f", 95 % interval {result.low:+.2f} to {result.high:+.2f}"
    if result.worth is not None:
        text += f"; a pair is worth {_times(result.worth)} unpaired ones"
    return text


def _times(pair_worth: float) -> str:
    if pair_worth > 1000:
        return "over 1000"
    if pair_worth >= 10:
        return f"{pair_worth:.0f}"
    return f"{pair_worth:.2g}"


STATISTIC = Statistic[PairCorrelation](
    label="correlation in pairs",
    kind="effect",
    place=9,
    compute=lambda a, b, _: pair_correlation(a, b),
    show=_show,
    of_binary=False,
)
