"""Evaluation noise of an experiment: its share in the outcome's variance, what it cost, what to plan next. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

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
    ends = {
        group: {run.ref.replicate: _outcomes(run) for run in _evaluated(history, group)} for group in history.groups
    }
    differences = [
        [ends[one.a][place] - ends[one.b][place] for place in sorted(ends[one.a].keys() & ends[one.b].keys())]
        for one in history.design.comparisons
    ]
    return _with_costs(history, _estimate(differences, len(history.design.groups) - 1))


def noise_of_runs(history: History) -> EvaluationNoise | None:
    """Return the evaluation noise in the outcomes of single runs, pooled over groups.

    Returns None in the same cases as `noise_of_pairs`.
    """
    groups = [[_outcomes(run) for run in _evaluated(history, group)] for group in history.groups]
    return _with_costs(history, _estimate(groups, len(groups)))


def _estimate(sets: Sequence[Sequence[Floats]], independent: int) -> Components | None:
    """Estimate from outcomes [episodes] by set and run; sets of fewer than two runs are skipped."""
    several = [np.stack(one) for one in sets if len(one) > 1]
    return components(several, min(independent, len(several)))


def _evaluated(history: History, group: str) -> list[RunHistory]:
    """Return the runs of a group whose outcome comes from a complete evaluation."""
    declared = history.design.outcome_over
    if declared != "evaluation":
        return []
    runs = (run for run in history.of_group(group) if outcome_of(run, declared) is not None)
    return [run for run in runs if len(_outcomes(run)) == run.spec.eval_episodes]


def _outcomes(run: RunHistory) -> Floats:
    """Return the outcome of each sampled episode, in the order of episodes and environments."""
    eval_episodes = run.evaluation.episodes if run.evaluation else ()
    sampled = sorted(
        (played for played in eval_episodes if played.actions == "sampled"), key=lambda x: (x.episode, x.result.env)
    )
    return np.array([played.result.outcome for played in sampled])


def _with_costs(history: History, found: Components | None) -> EvaluationNoise | None:
    """Add the seconds per training episode and per evaluation episode, over all evaluated runs."""
    experiment = history.plan.experiment
    done = [(run, run.evaluation) for run in history.runs.values() if run.evaluation is not None]
    if found is None or not done:
        return None
    trained_s = math.fsum(math.fsum(run.columns.known("total_s")) for run, _ in done)
    evaluated_s = math.fsum(evaluation.timing.total_s for _, evaluation in done)
    trained = len(done) * experiment.episodes * experiment.n_envs
    evaluated = sum(len(one.episodes) for _, one in done)
    if min(trained_s, evaluated_s) <= 0.0:
        return None
    return EvaluationNoise(
        components=found,
        episodes=experiment.episodes,
        n_envs=experiment.n_envs,
        training_episode_s=trained_s / trained,
        evaluation_episode_s=evaluated_s / evaluated,
    )
