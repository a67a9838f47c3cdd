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
from esper_ab.stats.floats import floats
from esper_ab.stats.pair import ROUNDING

LEVEL = 0.8  # confidence of the share's two limits (two-sided), and of the ratio's limit (one-sided)
_LEAST_DF = 2
_LEAST_EVAL_EPISODES = 2


def components(sets: Sequence[ArrayLike], independent: int | None = None) -> Components | None:
    """Estimate variance components from several sets of values [runs, episodes], each set with its own mean.

    All sets use the same evaluation episodes, and their sums of squares are pooled. The degrees of freedom count only
    `independent` sets (default: all sets); for all pairs of G groups, G - 1 are independent. Return None for fewer than
    two degrees of freedom between runs, for fewer than two episodes per run, and if runs, or the episodes of a run, do
    not differ beyond rounding.
    """
    values = [floats(one) for one in sets]
    if not values or values[0].shape[1] < _LEAST_EVAL_EPISODES or not all(np.isfinite(x).all() for x in values):
        return None
    runs = sum(len(x) for x in values)
    eval_episodes = values[0].shape[1]
    counted = (independent or len(values)) / len(values)
    df = round((runs - len(values)) * counted)
    df_episode = round(runs * (eval_episodes - 1) * counted)
    if df < _LEAST_DF:
        return None
    means = [x.mean(axis=1) for x in values]
    spread = math.fsum(float(np.sum((mean - mean.mean()) ** 2)) for mean in means)
    between: float = eval_episodes * spread / (runs - len(values))
    squares = math.fsum(float(np.sum((x - mean[:, None]) ** 2)) for x, mean in zip(values, means, strict=True))
    within: float = squares / (runs * (eval_episodes - 1))
    if min(within, between) <= (ROUNDING * max(float(np.max(np.abs(x))) for x in values)) ** 2:
        return None
    f = between / within
    tail = (1.0 - LEVEL) / 2.0

    def share_at(probability: float) -> float:
        return float(f_ppf(probability, df, df_episode)) / f

    return Components(
        runs=runs,
        eval_episodes=eval_episodes,
        policy=(between - within) / eval_episodes,
        episode=within,
        share=1.0 / f,
        share_low=share_at(tail),
        share_high=share_at(1.0 - tail),
        ratio_high=(1.0 / share_at(1.0 - LEVEL) - 1.0) / eval_episodes,
    )
