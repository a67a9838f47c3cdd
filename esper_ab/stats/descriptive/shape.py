"""The skewness of both groups, and a t-test that allows for the skewness of the differences.

A t-test of differences keeps its error rate if both groups have distributions of the same shape, because the
differences are then symmetric. If one group is skewed and the other has a small spread, the differences are not
symmetric. Johnson (1978), "Modified t tests and confidence intervals for asymmetrical populations":
t = (mean + m3 / (6 s^2 n) + m3 mean^2 / (3 s^4)) sqrt(n) / s, with n - 1 degrees of freedom, where m3 is the third
central moment. This test corrects part of the error, and no decision uses it.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import t_sf
from esper_ab.stats.floats import norm
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.rounding import degenerate
from esper_ab.stats.skewness import skewness
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import p_text


class Skewness(msgspec.Struct, frozen=True, kw_only=True):
    """The sample skewness of each group (third central moment / SD^3, denominators n) and the p of Johnson's test.

    The skewness of a group without spread is None.
    """

    skewness_a: float | None
    skewness_b: float | None
    johnson_p: float  # two-sided


def shape(a: ArrayLike, b: ArrayLike) -> Skewness | None:
    """Compute the skewness of a and b [pairs], and Johnson's p; None if no t-test of the differences is possible."""
    d = differences(a, b)
    n = d.size
    if n < 2 or degenerate(a, b):
        return None
    deviations = d - d.mean()
    sd = norm(deviations) / math.sqrt(n - 1)
    mean = float(d.mean() / sd)
    m3 = float(np.mean((deviations / sd) ** 3))
    t = (mean + m3 / (6.0 * n) + m3 * mean**2 / 3.0) * math.sqrt(n)
    p = float(2.0 * t_sf(abs(t), n - 1))
    return Skewness(skewness_a=skewness(a), skewness_b=skewness(b), johnson_p=p)


def _show(result: Skewness, context: ComparisonContext) -> str:
    group_words = []
    if result.skewness_a is not None:
        group_words.append(f"{result.skewness_a:+.1f} of {context.a}")
    if result.skewness_b is not None:
        group_words.append(f"{result.skewness_b:+.1f} of {context.b}")
    skew = ", ".join(group_words) or "unknown"
    return f"skewness {skew}; p {p_text(result.johnson_p)} by Johnson's t, which allows for it"


STATISTIC = Statistic[Skewness](
    label="shape",
    kind="test",
    place=3,
    compute=lambda a, b, _: shape(a, b),
    show=_show,
    of_binary=False,
)
