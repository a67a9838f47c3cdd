"""Evaluation noise of an experiment: its share in the outcome's variance, what it cost, what to plan next. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from esper_ab.contracts.records import EvaluatedEpisode
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.outcomes import outcome_of
from esper_ab.settings.eval_episodes import EvaluationNoise
from esper_ab.stats.evaluation_noise import Components
from esper_ab.stats.floats import Floats
from esper_ab.stats.variance_components import components


def noise_of_pairs(history: History) -> EvaluationNoise | None:
    """Return the evaluation noise in the differences of all compared pairs, whose runs share evaluation episodes.

    Returns None if the outcome does not come from the evaluation, or if there are too few data.
    """
    by_group = {group: _outcomes_by_replicate(history, group) for group in history.groups}
    differences = []
    for contrast in history.design.comparisons:
        outcomes_a = by_group[contrast.a]
        outcomes_b = by_group[contrast.b]
        common_replicates = sorted(outcomes_a.keys() & outcomes_b.keys())
        differences.append([outcomes_a[replicate] - outcomes_b[replicate] for replicate in common_replicates])
    return _add_costs(history, _estimate(differences, len(history.design.groups) - 1))


def noise_of_runs(history: History) -> EvaluationNoise | None:
    """Return the evaluation noise in the outcomes of single runs, pooled over groups.

    Returns None in the same cases as `noise_of_pairs`.
    """
    groups = [list(_outcomes_by_replicate(history, group).values()) for group in history.groups]
    return _add_costs(history, _estimate(groups, len(groups)))


def _estimate(sets: Sequence[Sequence[Floats]], independent_sets: int) -> Components | None:
    """Estimate from outcomes [episodes] by set and run; sets of fewer than two runs are skipped."""
    usable_sets = [np.stack(runs) for runs in sets if len(runs) > 1]
    return components(usable_sets, min(independent_sets, len(usable_sets)))


def _outcomes_by_replicate(history: History, group: str) -> dict[int, Floats]:
    """Return the outcomes [episodes] of each run of a group whose outcome comes from a complete evaluation."""
    outcome_kind = history.design.outcome_over
    by_replicate: dict[int, Floats] = {}
    if outcome_kind != "evaluation":
        return by_replicate
    for run in history.of_group(group):
        if outcome_of(run, outcome_kind) is None:
            continue
        outcomes = _outcomes(run)
        if len(outcomes) == run.spec.eval_episodes:
            by_replicate[run.ref.replicate] = outcomes
    return by_replicate


def _outcomes(run: RunHistory) -> Floats:
    """Return the outcome of each sampled episode, in the order of episodes and environments."""
    if run.evaluation is None:
        return np.array([])
    sampled_episodes = [episode for episode in run.evaluation.episodes if episode.actions == "sampled"]
    sampled_episodes.sort(key=_episode_and_environment)
    return np.array([episode.result.outcome for episode in sampled_episodes])


def _episode_and_environment(evaluated_episode: EvaluatedEpisode) -> tuple[int, int]:
    return evaluated_episode.episode, evaluated_episode.result.env


def _add_costs(history: History, noise: Components | None) -> EvaluationNoise | None:
    """Add the seconds per training episode and per evaluation episode, over all evaluated runs."""
    if noise is None:
        return None
    experiment = history.plan.experiment
    training_episodes = 0
    evaluated_episodes = 0
    training_s = []
    evaluation_s = []
    for run in history.runs.values():
        if run.evaluation is None:
            continue
        training_episodes += experiment.episodes * experiment.n_envs
        evaluated_episodes += len(run.evaluation.episodes)
        training_s.append(math.fsum(run.columns.known("total_s")))
        evaluation_s.append(run.evaluation.timing.total_s)
    total_training_s = math.fsum(training_s)
    total_evaluation_s = math.fsum(evaluation_s)
    if min(total_training_s, total_evaluation_s) <= 0.0:
        return None
    return EvaluationNoise(
        components=noise,
        episodes=experiment.episodes,
        n_envs=experiment.n_envs,
        training_episode_s=total_training_s / training_episodes,
        evaluation_episode_s=total_evaluation_s / evaluated_episodes,
    )
