"""Pearson's r and Spearman's rho of two variables, descriptive: no interval, no test."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, exact_sum, norm, two
from esper_ab.stats.ranks import mid_ranks
from esper_ab.stats.rounding import ROUNDING

_LEAST = 3  # two points always lie on a line


class Correlation(msgspec.Struct, frozen=True, kw_only=True):
    """Pearson's and Spearman's coefficients; None for fewer than 3 observations, or if a variable does not vary."""

    n: int
    pearson: float | None
    spearman: float | None  # Pearson's r of the ranks, ties at their mean rank


def correlation(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Compute both coefficients of x, y [n]; ValueError if x and y are not finite or not of equal length."""
    a, b = two(x, y)
    n = int(a.size)
    if n < _LEAST or _constant(a) or _constant(b):
        return Correlation(n=n, pearson=None, spearman=None)
    return Correlation(n=n, pearson=pearson(a, b), spearman=pearson(mid_ranks(a), mid_ranks(b)))


def _constant(values: Floats) -> bool:
    largest_value = float(np.max(np.abs(values)))
    return float(np.std(values)) <= ROUNDING * largest_value


def pearson(a: Floats, b: Floats) -> float:
    """Return Pearson's r. Sums are rounded exactly, so r does not depend on the order of the observations."""
    return pearson_of_deviations(a - exact_sum(a) / a.size, b - exact_sum(b) / b.size)


def pearson_of_deviations(da: Floats, db: Floats) -> float:
    """Return Pearson's r from the deviations from both means."""
    r = exact_sum((da / norm(da)) * (db / norm(db)))
    return min(1.0, max(-1.0, r))
