"""Whether the differences of pairs depend on when the pairs were run: trend and autocorrelation over replicates.

Every interval of a difference assumes independent pairs. Something that follows one group over time, such as a cache
or a leak, breaks this and looks like an effect. Both tests use the residuals after adjustment for positions.
Trend: the t of the slope over replicates. Autocorrelation (positive only): lag 1 over pairs in the order of their
replicates, r = sum e_i e_i+1 / sum e_i^2, against its moments for independent normal values, mean -1/n and variance
(n - 2)^2 / (n^2 (n - 1)) (Moran 1948).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.stats.adjusted_difference import design_matrix
from esper_ab.stats.distributions import norm_sf, t_sf
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import Pair, degenerate, resolution


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """Trend and autocorrelation of a - b over replicates."""

    slope: float  # per replicate
    slope_p: float  # two-sided
    autocorrelation: float
    autocorrelation_p: float  # one-sided


def drift(pairs: Sequence[Pair], positions: int) -> Drift | None:
    """Compute trend and autocorrelation; if `positions` is 1, nothing is adjusted for.

    Return None if there are fewer than 6 pairs, too little variation, or no residual degree of freedom.
    """
    ordered = sorted(pairs, key=lambda pair: pair.replicate)
    a, b = (np.array(side) for side in ([pair.a for pair in ordered], [pair.b for pair in ordered]))
    d = a - b
    if d.size < LEAST_PAIRS or degenerate(a, b):
        return None
    matrix = design_matrix([(pair.position_a, pair.position_b) for pair in ordered], positions)
    time = np.array([float(pair.replicate) for pair in ordered])
    basis = np.linalg.svd(matrix, full_matrices=False)[0][:, : np.linalg.matrix_rank(matrix)]
    left = d - basis @ (basis.T @ d)
    clock = time - basis @ (basis.T @ time)
    df = d.size - basis.shape[1] - 1
    within = float(clock @ clock)
    unit = float(np.max(np.abs(left)))
    if df < 1 or within < 1e-9 or unit <= resolution(a, b):
        return None
    left /= unit
    slope = float(clock @ left) / within
    rest = max(float(left @ left) - slope**2 * within, 0.0) / df
    p = float(2.0 * t_sf(abs(slope) / math.sqrt(rest / within), df)) if rest > 0.0 else 0.0
    r = float(left[1:] @ left[:-1]) / float(left @ left)
    n = d.size
    z = (r + 1.0 / n) * n * math.sqrt(n - 1.0) / (n - 2.0)
    return Drift(slope=slope * unit, slope_p=p, autocorrelation=r, autocorrelation_p=float(norm_sf(z)))
