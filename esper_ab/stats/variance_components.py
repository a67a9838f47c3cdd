"""The share of the variance of runs or pairs that comes from the evaluation episodes: one-way random effects.

x[r, i] = mean + policy[r] + episode[r, i]. The limits are those of F, exact for normal effects: Searle, Casella &
McCulloch (1992), "Variance Components", section 3.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.distributions import f_ppf
from esper_ab.stats.evaluation_noise import Components
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.rounding import ROUNDING

LEVEL = 0.8  # confidence of the share's two limits (two-sided), and of the ratio's limit (one-sided)
_LEAST_DF = 2
_LEAST_EVAL_EPISODES = 2


def components(sets: Sequence[ArrayLike], independent_sets: int | None = None) -> Components | None:
    """Estimate variance components from several sets of values [runs, episodes], each set with its own mean.

    All sets use the same evaluation episodes, and their sums of squares are pooled. The degrees of freedom count only
    `independent_sets` sets (default: all sets); for all pairs of G groups, G - 1 are independent. Return None for fewer
    than two degrees of freedom between runs, for fewer than two episodes per run, and if runs, or the episodes of a
    run, do not differ beyond rounding.
    """
    arrays = [floats(values) for values in sets]
    if not arrays or arrays[0].shape[1] < _LEAST_EVAL_EPISODES:
        return None
    if not all(np.isfinite(x).all() for x in arrays):
        return None
    n_sets = len(arrays)
    runs = sum(len(x) for x in arrays)
    eval_episodes = arrays[0].shape[1]
    independent_share = (independent_sets or n_sets) / n_sets
    df = round((runs - n_sets) * independent_share)
    df_episode = round(runs * (eval_episodes - 1) * independent_share)
    if df < _LEAST_DF:
        return None
    between_variance: float = eval_episodes * _squares_between(arrays) / (runs - n_sets)
    within_variance: float = _squares_within(arrays) / (runs * (eval_episodes - 1))
    largest_value = max(float(np.max(np.abs(x))) for x in arrays)
    if min(within_variance, between_variance) <= (ROUNDING * largest_value) ** 2:
        return None
    f = between_variance / within_variance
    tail = (1.0 - LEVEL) / 2.0

    def share_at(probability: float) -> float:
        return float(f_ppf(probability, df, df_episode)) / f

    return Components(
        runs=runs,
        eval_episodes=eval_episodes,
        policy=(between_variance - within_variance) / eval_episodes,
        episode=within_variance,
        share=1.0 / f,
        share_low=share_at(tail),
        share_high=share_at(1.0 - tail),
        ratio_high=(1.0 / share_at(1.0 - LEVEL) - 1.0) / eval_episodes,
    )


def _squares_between(arrays: Sequence[Floats]) -> float:
    """Return the sum of squares of the runs' means around the mean of their set."""
    squares = []
    for x in arrays:
        means = x.mean(axis=1)
        squares.append(float(np.sum((means - means.mean()) ** 2)))
    return math.fsum(squares)


def _squares_within(arrays: Sequence[Floats]) -> float:
    """Return the sum of squares of single episodes around the mean of their run."""
    squares = []
    for x in arrays:
        means = x.mean(axis=1)
        squares.append(float(np.sum((x - means[:, None]) ** 2)))
    return math.fsum(squares)
