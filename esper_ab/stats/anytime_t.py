"""Anytime-valid t-test: an interim look after every pair, without a declared maximum.

The e-value is the Bayes factor of the t statistic, with an N(0, 1/g) prior on the standardised difference and a
right-Haar prior on scale and position effects. If there is no difference, the e-value is a nonnegative martingale with
mean 1, so the probability that it ever reaches 1/alpha is at most alpha (Ville's inequality). Rouder et al. (2009);
Grunwald, de Heide & Koolen (2024). `df` = n - 1 and `information` = n give the one-sample t-test.
"""

from __future__ import annotations

import math


def log_evidence(t: float, df: float, information: float, g: float = 1.0) -> float:
    """Return the natural log of the e-value of t, for `df` >= 1 and `information` > 0 (see AdjustedDifference)."""
    r = g / (g + information)
    log_ratio = math.log1p(t * t / df) - math.log1p(r * t * t / df)
    return 0.5 * math.log(r) + (df + 1) / 2.0 * log_ratio


def anytime_interval(
    mean: float, se: float, df: float, information: float, evidence: float, *, g: float = 1.0
) -> tuple[float, float] | None:
    """Return the interval of differences whose e-value is below `evidence` > 1; `se` is the standard error of `mean`.

    Return None if the interval is unbounded, because the pairs are too few to rule out any difference.
    """
    t = least_t(df, information, evidence, g)
    if math.isinf(t):
        return None
    half_width = t * se
    return mean - half_width, mean + half_width


def least_t(df: float, information: float, evidence: float, g: float = 1.0) -> float:
    """Return the |t| from which on the e-value is at least `evidence` > 1; infinity if none is large enough."""
    r = g / (g + information)
    log_evidence_of_t = math.log(evidence) - 0.5 * math.log(r)
    ratio = math.exp(log_evidence_of_t * 2.0 / (df + 1))  # (1 + x) / (1 + r x), x = t^2 / df
    if ratio * r >= 1.0:
        return math.inf
    return math.sqrt(df * (ratio - 1.0) / (1.0 - ratio * r))
