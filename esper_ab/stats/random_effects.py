"""The mean over experiments whose true differences may vary: a random-effects meta-analysis of few experiments.

The model: estimate i is normal with mean mu + u_i and its own known variance, and u_i is normal with the variance
tau^2 between experiments. tau^2 is the Paule-Mandel estimate, at which the weighted sum of squares equals its
expectation k - 1 (Paule & Mandel 1982). The interval is that of Knapp & Hartung (2003): the standard error comes from
the scatter of the estimates, with Student's t on k - 1 degrees of freedom. By chance a few estimates may agree more
than their variances allow; then the standard error is that of the variances, so that the interval is never narrower
than the estimates justify (Roever, Knapp & Friede 2015).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import chi2_sf, t_isf
from esper_ab.stats.floats import Floats, exact_sum, two

LEAST_EXPERIMENTS = 3  # with two, the interval has one degree of freedom and says almost nothing
_BISECTIONS = 80


class RandomEffects(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of a random-effects model with its interval, and how much the experiments differ."""

    experiments: int
    mean: float
    se: float
    low: float
    high: float
    level: float  # confidence of [low, high]
    df: int  # experiments - 1
    tau: float  # standard deviation of the true differences between experiments, in their unit
    q: float  # Cochran's Q
    q_p: float  # its p if all true differences are equal
    i_squared: float  # share of Q that the noise of the estimates does not explain, 0 .. 1 (Higgins & Thompson 2002)


def random_effects(
    estimates: ArrayLike, variances: ArrayLike, level: float = 0.95, *, floor: bool = True
) -> RandomEffects:
    """Combine `estimates` [k] with their sampling `variances` [k], all above 0, k >= 2.

    `floor`: whether the standard error is at least that of the variances; without it, it is that of Knapp & Hartung.
    """
    y, v = two(estimates, variances)
    if y.size < 2 or bool(np.any(v <= 0.0)):
        raise ValueError("expected at least two estimates, each with a variance above 0")
    df = int(y.size) - 1
    tau_squared = paule_mandel(y, v)
    weights = 1.0 / (v + tau_squared)
    mean = _weighted_mean(y, weights)
    scatter = _sum_of_squares(y, weights) / df
    if floor:
        scatter = max(1.0, scatter)
    se = math.sqrt(scatter / exact_sum(weights))
    half_width = float(t_isf((1.0 - level) / 2.0, df)) * se
    q = _sum_of_squares(y, 1.0 / v)
    return RandomEffects(
        experiments=int(y.size),
        mean=mean,
        se=se,
        low=mean - half_width,
        high=mean + half_width,
        level=level,
        df=df,
        tau=math.sqrt(tau_squared),
        q=q,
        q_p=float(chi2_sf(q, df)),
        i_squared=max(0.0, (q - df) / q) if q > 0.0 else 0.0,
    )


def paule_mandel(y: Floats, v: Floats) -> float:
    """Return the variance between experiments at which the weighted sum of squares is k - 1; 0.0 if none is needed."""
    df = y.size - 1
    if _sum_of_squares(y, 1.0 / v) <= df:
        return 0.0
    low = 0.0
    high = float(np.var(y, ddof=1))
    while _sum_of_squares(y, 1.0 / (v + high)) > df:
        high *= 2.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if _sum_of_squares(y, 1.0 / (v + middle)) > df:
            low = middle
        else:
            high = middle
    return high


def _weighted_mean(y: Floats, weights: Floats) -> float:
    return exact_sum(weights * y) / exact_sum(weights)


def _sum_of_squares(y: Floats, weights: Floats) -> float:
    """Return the weighted sum of squared deviations from the weighted mean."""
    return exact_sum(weights * (y - _weighted_mean(y, weights)) ** 2)
