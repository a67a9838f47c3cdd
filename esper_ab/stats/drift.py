"""Whether the differences of pairs depend on when the pairs were run: trend and autocorrelation over replicates.

Every interval of a difference assumes independent pairs. Something that follows one group over time, such as a cache
or a leak, breaks this and looks like an effect. Both tests use the residuals after adjustment for positions.
Trend: the t of the slope over replicates. Autocorrelation (positive only): lag 1 over pairs in the order of their
replicates, r = sum e_i e_i+1 / sum e_i^2, against its moments for independent normal values, mean -1/n and variance
(n - 2)^2 / (n^2 (n - 1)) (Moran 1948).
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from esper_ab.stats.design_matrix import design_matrix
from esper_ab.stats.distributions import norm_sf, t_sf
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pairs
from esper_ab.stats.rounding import degenerate, resolution


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Trend and autocorrelation of a - b over replicates."""

    slope: float  # per replicate
    slope_p: float  # two-sided
    autocorrelation: float
    autocorrelation_p: float  # one-sided


def drift(pairs: Pairs, positions: int) -> Drift | None:
    """Compute trend and autocorrelation; if `positions` is 1, nothing is adjusted for.

    Return None if there are fewer than 6 pairs, too little variation, or no residual degree of freedom.
    """
    ordered_pairs = pairs.ordered()
    a = ordered_pairs.a
    b = ordered_pairs.b
    if len(ordered_pairs) < LEAST_PAIRS or degenerate(a, b):
        return None
    d = a - b
    time = ordered_pairs.replicate.astype(np.float64)
    basis = _basis_of_positions(ordered_pairs, positions)
    residuals = d - basis @ (basis.T @ d)
    clock = time - basis @ (basis.T @ time)
    df = d.size - basis.shape[1] - 1
    clock_square = float(clock @ clock)
    unit = float(np.max(np.abs(residuals)))
    if df < 1 or clock_square < 1e-9 or unit <= resolution(a, b):
        return None
    residuals /= unit
    squares = float(residuals @ residuals)
    slope = float(clock @ residuals) / clock_square
    residual_variance = max(squares - slope**2 * clock_square, 0.0) / df
    slope_p = 0.0
    if residual_variance > 0.0:
        t = abs(slope) / math.sqrt(residual_variance / clock_square)
        slope_p = float(2.0 * t_sf(t, df))
    r = float(residuals[1:] @ residuals[:-1]) / squares
    return Drift(
        slope=slope * unit,
        slope_p=slope_p,
        autocorrelation=r,
        autocorrelation_p=_autocorrelation_p(r, d.size),
    )


def _basis_of_positions(pairs: Pairs, positions: int) -> Floats:
    """Return an orthonormal basis, [pairs, rank], of the mean and the position effects."""
    matrix = design_matrix(pairs.sides, positions)
    left_vectors, _, _ = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left_vectors[:, : np.linalg.matrix_rank(matrix)])


def _autocorrelation_p(r: float, n: int) -> float:
    """Return the one-sided p of an autocorrelation of n residuals, by its moments for independent normal values."""
    z = (r + 1.0 / n) * n * math.sqrt(n - 1.0) / (n - 2.0)
    return float(norm_sf(z))
