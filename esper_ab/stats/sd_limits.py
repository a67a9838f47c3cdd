"""Chi-square confidence limits of a standard deviation that was estimated from normal values."""

from __future__ import annotations

import math

from esper_ab.stats.distributions import chi2_isf


def sd_limits(sd: float, df: int, level: float) -> tuple[float, float]:
    """Return the limits, at confidence `level`, of a standard deviation estimated with `df` degrees of freedom.

    They are sd * sqrt(df / chi2 quantile) (Snedecor & Cochran 1989).
    """
    tail = (1.0 - level) / 2.0
    high_chi2 = float(chi2_isf(tail, df))
    low_chi2 = float(chi2_isf(1.0 - tail, df))
    return sd * math.sqrt(df / high_chi2), sd * math.sqrt(df / low_chi2)
