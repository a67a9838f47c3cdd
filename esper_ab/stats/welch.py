"""Runs of two groups that share nothing: Welch's t, with the degrees of freedom of Satterthwaite.

Welch (1947); Satterthwaite (1946). Groups may differ in spread and in number. Among few runs of a skewed law none may
be in its tail, so that they seem to vary little. If either group shows that a law is skewed, the spread of all runs
gives a larger standard error, which is used. A small group may hide its tail entirely, so even without that its
spread counts as at least two thirds of that of the larger group (docs/internals/verdict-rules.md).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.floats import Floats, exact_sum, floats, norm
from esper_ab.stats.rounding import rests_on_few, steady
from esper_ab.stats.skewness import skewness

_SKEWED = 0.5  # larger |skewness| of a group: its law may have a tail
_LEAST_SPREAD = 2.0 / 3.0  # of the smaller group, in SDs of the larger one


def welch(a: ArrayLike, b: ArrayLike) -> AdjustedDifference | None:
    """Compare the means of a [n], b [m] with Welch's t-test; None if a group has no run.

    The standard error is Welch's. If n != m, it is at least that of a common standard deviation if the skewness of a
    group is above 0.5 or below -0.5. Otherwise it is at least the smaller of that and the one of a smaller group whose
    standard deviation is two thirds of the larger group's.
    The result has no test if neither group varies. It also has no test if more than half of all runs have the same
    outcome and fewer than LEAST_PAIRS runs have a different one, because a claim would depend on these few.
    """
    x = floats(a)
    y = floats(b)
    n = x.size
    m = y.size
    if not n or not m:
        return None
    untested = AdjustedDifference(
        name="Welch's t",
        pairs=min(n, m),
        mean=exact_sum(x) / n - exact_sum(y) / m,
        sd=None,
        se=None,
        t=None,
        df=0,
        p=None,
        information=0.0,
        positions=(),
    )
    if (
        untested.pairs < 2
        or rests_on_few(np.concatenate((x, y)))
        or (steady(x, untested.mean) and steady(y, untested.mean))
    ):
        return untested
    spread_a = norm(x - np.mean(x))
    spread_b = norm(y - np.mean(y))
    se_a = spread_a / math.sqrt(n * (n - 1))  # of the mean of a
    se_b = spread_b / math.sqrt(m * (m - 1))
    own_error = math.hypot(se_a, se_b)
    df = 1.0 / math.fsum([(se_a / own_error) ** 4 / (n - 1), (se_b / own_error) ** 4 / (m - 1)])
    common_error = math.hypot(spread_a, spread_b) * math.sqrt((n + m) / (n * m) / (n + m - 2))
    if _skewed(x) or _skewed(y):
        se = max(own_error, common_error)
    else:
        se = max(own_error, min(common_error, _least_se(n, se_a, m, se_b)))
    t = untested.mean / se
    return msgspec.structs.replace(untested, se=se, t=t, df=df, p=float(2.0 * t_sf(abs(t), df)))


def _skewed(outcomes: Floats) -> bool:
    return abs(skewness(outcomes) or 0.0) > _SKEWED


def _least_se(n: int, se_a: float, m: int, se_b: float) -> float:
    """Return the standard error if the smaller group's SD is two thirds of the larger's.

    `se_a` and `se_b`: standard errors of the means of n and m runs.
    """
    if (n, se_a) <= (m, se_b):
        smaller_n = n
        larger_n = m
        se = se_b
    else:
        smaller_n = m
        larger_n = n
        se = se_a
    return math.hypot(_LEAST_SPREAD * se * math.sqrt(larger_n / smaller_n), se)
