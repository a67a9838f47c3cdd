"""Cohen's d_z: the mean of paired differences in their standard deviations, with its exact interval.

d_z (Cohen 1988) is t / sqrt(pairs); power analysis of pairs needs it. Its limits are those of the noncentral t, exact
for normal differences.
"""

from __future__ import annotations

import math

import msgspec
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import nct_limits
from esper_ab.stats.floats import norm
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.rounding import degenerate
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import percent

LEVEL = 0.95


class CohensDz(msgspec.Struct, frozen=True, kw_only=True):
    """d_z with its 95 % interval."""

    d: float
    low: float
    high: float


def cohens_d_z(a: ArrayLike, b: ArrayLike) -> CohensDz | None:
    """Compute d_z of a - b [pairs >= 2]; None if no t-test of the differences is possible."""
    d = differences(a, b)
    if d.size < 2 or degenerate(a, b):
        return None
    sd = norm(d - d.mean()) / math.sqrt(d.size - 1)
    value = float(d.mean()) / sd
    root = math.sqrt(d.size)
    low, high = nct_limits(value * root, d.size - 1, LEVEL)
    return CohensDz(d=value, low=low / root, high=high / root)


def _show(result: CohensDz, _: ComparisonContext) -> str:
    return f"{result.d:+.2f} SD of the differences, {result.low:+.2f} to {result.high:+.2f} ({percent(LEVEL)})"


STATISTIC = Statistic[CohensDz](
    label="Cohen's d_z",
    kind="effect",
    place=7,
    compute=lambda a, b, _: cohens_d_z(a, b),
    show=_show,
    of_binary=False,
)
