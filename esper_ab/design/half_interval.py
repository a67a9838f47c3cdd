"""What halves the intervals of an experiment: more pairs, more evaluation episodes, or both at the least cost. Pure.

The variance of n pairs with m evaluation episodes is (P + H / m) / n (`stats/evaluation_noise.py`), and the interval
also shortens as the degrees of freedom grow. A gain from more episodes counts as far as the limits of the noise allow.
"""

from __future__ import annotations

import math

import msgspec

from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.distributions import t_isf
from esper_ab.stats.evaluation_noise import most_eval_episodes

_MOST_PAIRS = 10_000


class HalfInterval(msgspec.Struct, frozen=True, kw_only=True):
    """Plans whose intervals are about half as wide as those of this experiment; None for what no plan reaches."""

    pairs: int | None  # with the evaluation episodes of this experiment
    eval_episodes: int | None  # with the pairs of this experiment
    cheapest_pairs: (
        int | None
    )  # with the number of episodes suggested for the next plan, or with these if it costs less
    cheapest_eval_episodes: int


def half_interval(noise: EvaluationNoise, pairs: int, p: float) -> HalfInterval | None:
    """Return the plans for half the interval at level 1 - `p`; None with fewer than two `pairs` per comparison."""
    if pairs < 2:
        return None
    eval_episodes = noise.components.eval_episodes
    with_these = _pairs_needed(pairs, p, 1.0)
    suggested = noise.next_eval_episodes
    with_suggested = _pairs_needed(pairs, p, noise.variance_times(suggested))
    cheapest = (with_these, eval_episodes)
    if with_suggested is not None:
        cost = with_suggested * noise.cost_times(suggested)
        if with_these is None or cost < with_these:
            cheapest = (with_suggested, suggested)
    cheapest_pairs, cheapest_eval_episodes = cheapest
    return HalfInterval(
        pairs=with_these,
        eval_episodes=_episodes_needed(noise),
        cheapest_pairs=cheapest_pairs,
        cheapest_eval_episodes=cheapest_eval_episodes,
    )


def _pairs_needed(pairs: int, p: float, variance_times: float) -> int | None:
    """Return the least pairs, at least as many as now, with a variance per pair of `variance_times` today's."""
    goal = _half_width(pairs, p, 1.0) / 2.0
    low = pairs - 1
    high = _MOST_PAIRS
    if _half_width(high, p, variance_times) > goal:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _half_width(middle, p, variance_times) <= goal and middle >= pairs:
            high = middle
        else:
            low = middle
    return high


def _half_width(pairs: int, p: float, variance: float) -> float:
    return float(t_isf(p / 2.0, pairs - 1)) * math.sqrt(variance / pairs)


def _episodes_needed(noise: EvaluationNoise) -> int | None:
    """Return the least evaluation episodes, in whole turns of all environments, with a quarter of the variance."""
    step = noise.n_envs
    turns = most_eval_episodes(noise.training(noise.episodes, step), step) // step
    if noise.variance_times(turns * step) > 0.25:
        return None
    low = noise.components.eval_episodes // step
    high = turns
    while high - low > 1:
        middle = (low + high) // 2
        if noise.variance_times(middle * step) <= 0.25:
            high = middle
        else:
            low = middle
    return high * step
