"""Descriptive summaries of groups over several tasks: profiles, interquartile mean and optimality gap. Pure.

After Agarwal et al. (2021). A score is (outcome - WORST) / (TARGET - WORST) of its task, so 1 reaches the target.
Intervals are 95 % percentile bootstraps stratified by task; they are descriptive. Lost runs have no score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.random import Generator

from esper_ab.stats.descriptive.iqm import interquartile_means
from esper_ab.stats.floats import Floats
from esper_ab.verdict.observations import Observations

Ranges = Mapping[str, tuple[float, float]]  # task -> (worst, target)
HONEST_FROM = 10  # runs per task from which a bootstrap is honest
_RESAMPLES = 2_000
_TAILS = (0.025, 0.975)
_STEPS = 100


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """One number over all tasks, with its interval."""

    value: float
    low: float
    high: float


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One group over all tasks."""

    group: str
    runs: int  # number of runs with a score, in the task with the fewest
    interquartile_mean: Aggregate  # of all scores, without the outer quarters
    optimality_gap: Aggregate  # mean shortfall of the scores from the target; 0: all reach it
    thresholds: tuple[float, ...]  # scores
    above: tuple[float, ...]  # share of runs above each threshold, averaged over tasks
    above_low: tuple[float, ...]  # pointwise
    above_high: tuple[float, ...]


def profiles_of(observations: Observations, groups: Sequence[str], ranges: Ranges) -> tuple[Profile, ...]:
    """Return the profile of every group that has a score in every task of `ranges`."""
    scores: dict[str, list[Floats]] = {}  # by group, then by task
    for group in groups:
        by_task = [_scores(observations, group, task, ranges[task]) for task in ranges]
        if all(task_scores.size for task_scores in by_task):
            scores[group] = by_task
    if not scores:
        return ()
    all_scores = np.concatenate([np.concatenate(by_task) for by_task in scores.values()])
    thresholds = np.linspace(min(0.0, all_scores.min()), max(1.0, all_scores.max()), _STEPS + 1)
    rng = np.random.default_rng(observations.rng_seed)
    return tuple(_profile(group, by_task, thresholds, rng) for group, by_task in scores.items())


def optimality_gap(scores: Floats) -> Floats:
    """Return the mean shortfall of the scores [..., n] below 1."""
    return np.asarray(1.0 - np.minimum(scores, 1.0).mean(axis=-1))


def _scores(observations: Observations, group: str, task: str, reach: tuple[float, float]) -> Floats:
    worst_outcome, target = reach
    values = np.sort(observations.rows.outcomes(group, task))  # so that no interval depends on the order of rows
    return np.asarray((values - worst_outcome) / (target - worst_outcome))


def _profile(group: str, by_task: Sequence[Floats], thresholds: Floats, rng: Generator) -> Profile:
    drawn_scores = []  # [resamples, runs] each
    for scores in by_task:
        drawn_indices = rng.integers(0, scores.size, (_RESAMPLES, scores.size))
        drawn_scores.append(scores[drawn_indices])
    low, high = np.quantile(_share_above(drawn_scores, thresholds), _TAILS, axis=0)
    mean = interquartile_means(np.concatenate(by_task))
    drawn_means = interquartile_means(np.concatenate(drawn_scores, axis=1))
    gap = np.mean([optimality_gap(scores) for scores in by_task])
    drawn_gaps = np.mean([optimality_gap(scores) for scores in drawn_scores], axis=0)
    shares_above = _share_above([scores[None] for scores in by_task], thresholds)
    return Profile(
        group=group,
        runs=min(scores.size for scores in by_task),
        interquartile_mean=_aggregate(mean, drawn_means),
        optimality_gap=_aggregate(gap, drawn_gaps),
        thresholds=_floats(thresholds),
        above=_floats(shares_above[0]),
        above_low=_floats(low),
        above_high=_floats(high),
    )


def _share_above(by_task: Sequence[Floats], thresholds: Floats) -> Floats:
    """Return [resamples, thresholds]: the share of scores above each threshold, with equal weight per task."""
    shares = []
    for scores in by_task:
        ordered_scores = np.sort(scores, axis=-1)
        counts = np.stack([row.size - np.searchsorted(row, thresholds, side="right") for row in ordered_scores])
        shares.append(counts / scores.shape[-1])
    return np.asarray(np.mean(shares, axis=0))


def _aggregate(value: float | np.floating | Floats, resampled_values: Floats) -> Aggregate:
    low, high = np.quantile(resampled_values, _TAILS)
    return Aggregate(value=float(value), low=float(low), high=float(high))


def _floats(values: Floats) -> tuple[float, ...]:
    return tuple(map(float, values))
