"""Numbers of each run that may be compared between groups. Pure; no numpy, so the live view may use it.

The outcome is one number per run: by default the mean outcome over all environments and sampled episodes of the
evaluation. Rewards are also listed. Every reward mode has its own scale, so two rewards are compared only if their mode
is the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

from esper_ab.contracts.outcome_window import in_window
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord, RunRef
from esper_ab.journal.fold import History, RunHistory

Ends = tuple[float | None, float | None]  # mean of the first tenth of a run's episodes, and of the last


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one run; None for a number that does not exist or is not known yet."""

    run: RunRef
    outcome: float | None  # declared by the plan; the number that is compared
    evaluated: float | None  # mean over the evaluation, by the trained policy's sampled actions
    greedy: float | None  # the same by its greedy actions
    failed: float | None  # share of the evaluation's environments that failed
    entropy_change: float | None  # nats: last tenth of the episodes minus the first
    training_area: float | None  # mean outcome over all training episodes
    measures: dict[str, float | None]  # by declared name: means over the evaluation, sampled actions
    rewards: dict[str, float | None]  # evaluation reward under every mode
    digest: str | None  # of the evaluation record


def mean(values: Iterable[float | None]) -> float | None:
    """Return the exactly rounded mean of the values that are not None; None if there are none or one is not finite."""
    return _finite_mean([value for value in values if value is not None])


def mean_known(values: Iterable[float]) -> float | None:
    """Return the exactly rounded mean of the values that are not NaN (absent in `Columns`); None if there are none."""
    return _finite_mean([value for value in values if value == value])


def _finite_mean(values: list[float]) -> float | None:
    if values and all(map(math.isfinite, values)):
        return math.fsum(values) / len(values)
    return None


def ends_of(column: Sequence[float]) -> Ends:
    """Return the means of the first and the last tenth of a column."""
    part = math.ceil(len(column) / 10)
    return mean_known(column[:part]), mean_known(column[-part:])


def episode_mean(record: EpisodeRecord, value: Callable[[EnvEpisode], float | None]) -> float | None:
    """Return the mean of `value` over the environments of one episode."""
    return mean(value(env) for env in record.envs)


def mean_outcome(record: EpisodeRecord | EvaluationRecord | None) -> float | None:
    """Return the mean outcome over a record's environments; for an evaluation, over sampled actions only."""
    if isinstance(record, EpisodeRecord):
        return episode_mean(record, lambda env: env.outcome)
    return _evaluated(record, "sampled", lambda env: env.outcome)


def outcome_of(run: RunHistory, outcome_kind: str) -> float | None:
    """Return the outcome by which a run is compared; `outcome_kind` as in the design.

    Returns None until the run is evaluated and all its records exist. Also returns None if the run was given up or the
    number is not finite.
    """
    if run.evaluation is None or run.lost:
        return None
    if outcome_kind == "evaluation":
        return mean_outcome(run.evaluation)
    curve = run.columns.of("outcome")
    if len(curve) < run.spec.episodes:
        return None
    return mean_known(in_window(curve, outcome_kind))


def entropy_change(run: RunHistory) -> float | None:
    """Return the policy entropy of the last tenth of episodes minus that of the first, nats.

    None below two episodes.
    """
    columns = run.columns
    entropies = [value for value, learns in zip(columns.of("entropy"), columns.of("learns"), strict=True) if learns]
    if len(entropies) < 2:
        return None
    first_mean, last_mean = ends_of(entropies)
    return None if first_mean is None or last_mean is None else last_mean - first_mean


def outcomes(history: History) -> dict[str, RunOutcome]:
    """Return the outcome of every run by name, in plan order."""
    return {name: _outcome(run, history.design.outcome_over) for name, run in history.runs.items()}


def _evaluated(
    evaluation: EvaluationRecord | None, actions: str, value: Callable[[EnvEpisode], float | None]
) -> float | None:
    if evaluation is None:
        return None
    return mean(value(episode.result) for episode in evaluation.episodes if episode.actions == actions)


def _outcome(run: RunHistory, outcome_kind: str) -> RunOutcome:
    evaluation = run.evaluation
    sampled_mean = partial(_evaluated, evaluation, "sampled")
    return RunOutcome(
        run=run.ref,
        outcome=outcome_of(run, outcome_kind),
        evaluated=mean_outcome(evaluation),
        greedy=_evaluated(evaluation, "greedy", lambda env: env.outcome),
        failed=sampled_mean(lambda env: float(env.failed)),
        entropy_change=entropy_change(run),
        training_area=mean_known(run.columns.of("outcome")),
        measures={name: sampled_mean(partial(measured, name)) for name in run.columns.measures},
        rewards=_rewards(evaluation),
        digest=evaluation.digest if evaluation else None,
    )


def mean_measure(evaluation: EvaluationRecord | None, name: str) -> float | None:
    """Return the mean of a declared measure over an evaluation's sampled episodes."""
    return _evaluated(evaluation, "sampled", partial(measured, name))


def measured(name: str, env: EnvEpisode) -> float | None:
    """Return a declared measure of an environment's episode."""
    return env.measures[name]


def _rewards(evaluation: EvaluationRecord | None) -> dict[str, float | None]:
    if evaluation is None:
        return {}
    sampled_rewards = [episode.rewards for episode in evaluation.episodes if episode.actions == "sampled"]
    modes = sorted({mode for rewards in sampled_rewards for mode in rewards})
    return {mode: mean(rewards.get(mode) for rewards in sampled_rewards) for mode in modes}
