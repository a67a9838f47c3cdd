"""Evaluation noise, and the number of episodes that minimises variance x cost. Needs neither numpy nor scipy.

The variance of an outcome over m episodes is P + H / m, where P is the variance between policies and H the variance
between episodes under one policy. The same holds for the difference of a pair. A run costs as much as T + m evaluation
episodes, where T stands for its training. The cost of the pairs for a given precision is then proportional to (P + H /
m) (T + m), with a minimum at m = sqrt(T H / P). Half or twice that number of episodes costs at most an eighth more.
"""

from __future__ import annotations

import math

import msgspec

_MOST_PER_TRAINING = 4.0  # even without policy variance, variance x cost is then within a quarter of its limit


class Components(msgspec.Struct, frozen=True, kw_only=True):
    """Variances of runs, or of the differences of pairs, in squared units.

    The interval from `share_low` to `share_high` leaves out 10 % at each end.
    """

    runs: int  # or pairs
    eval_episodes: int  # of each
    policy: float  # between runs, without the noise of their episodes; unbiased, so it may be negative
    episode: float  # of one episode within a run, above 0
    share: float  # of evaluation noise in the variance of an outcome; above 1 if `policy` is negative
    share_low: float
    share_high: float
    ratio_high: float  # policy / episode, upper 80 % limit; 0 or less if episode noise explains how runs differ

    def variance(self, eval_episodes: float) -> float:
        """Return the variance of an outcome over `eval_episodes` episodes, taking a negative policy variance as 0."""
        return max(self.policy, 0.0) + self.episode / eval_episodes


def variance_times_cost(eval_episodes: float, ratio: float, training: float) -> float:
    """Return variance x cost of `eval_episodes` episodes, in units of H.

    `ratio` is P / H, and `training` is T in units of evaluation episodes.
    """
    return (max(ratio, 0.0) + 1.0 / eval_episodes) * (training + eval_episodes)


def most_eval_episodes(training: float, step: int) -> int:
    """Return the largest number of episodes that may be chosen.

    It is a multiple of `step` that costs at most four times as much as the training, but at least `step`.
    """
    return step * max(1, math.floor(_MOST_PER_TRAINING * training / step))


def best_eval_episodes(ratio: float, training: float, step: int) -> int:
    """Return the multiple of `step` with the least variance x cost, up to `most_eval_episodes`.

    If `ratio` is 0 or less, there is no policy variance, so more episodes are always better.
    """
    most_episodes = most_eval_episodes(training, step)
    ideal_episodes = math.inf
    if ratio > 0.0:
        ideal_episodes = math.sqrt(training / ratio)
    episodes_below = step * max(1, math.floor(min(ideal_episodes, most_episodes) / step))
    episodes_above = min(episodes_below + step, most_episodes)
    if variance_times_cost(episodes_above, ratio, training) < variance_times_cost(episodes_below, ratio, training):
        return episodes_above
    return episodes_below
