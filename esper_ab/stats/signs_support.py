"""The share of normal samples in which the exact test of signs supports a t-test."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from esper_ab.stats.exact_signs import signs_p
from esper_ab.stats.floats import Floats

COSTLY = (7, 8)  # numbers of pairs at which the second test costs more than a point of power at 5 %
_DIRECTIONS = 4_000  # of residuals; standard error of a share: 0.008
_STEPS = 32  # of the grid of t


@cache
def support(pairs: int, df: int, alpha: float) -> tuple[Floats, Floats]:
    """Return values of t from 0 on [steps], and the share [steps] of normal samples with that t that the test supports.

    Beyond the last t all samples are supported, because all differences have one sign. Given t, this depends only on
    the direction of the residuals, which is independent of the mean and the SD of the sample, hence of the true effect,
    and of all later pairs. Requires smallest_p(pairs) <= alpha. With `df` < `pairs` - 1, some of the differences'
    variation is estimated effects of positions; residuals are still drawn in all directions. With `df` > `pairs` - 1,
    a moderated t, the rest is the prior's, which the signs do not see.
    """
    rng = np.random.default_rng(pairs)
    residuals = rng.standard_normal((_DIRECTIONS, pairs))
    residuals -= residuals.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(residuals, axis=1, keepdims=True)
    if df >= pairs:
        norms = np.sqrt(norms**2 + rng.chisquare(df - pairs + 1, (_DIRECTIONS, 1)))
    residuals *= math.sqrt(df) / norms
    grid = np.linspace(0.0, math.sqrt(df * (pairs - 1)), _STEPS)
    shares = np.ones(_STEPS)
    for step, t in enumerate(grid[:-1]):
        p = signs_p(residuals + t / math.sqrt(pairs))
        shares[step] = np.mean(p <= alpha)
    return grid, shares
