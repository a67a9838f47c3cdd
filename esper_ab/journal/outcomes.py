"""Numbers of each run that may be compared between groups. Pure; no numpy, so the live view may use it.

The endpoint is one number per run: by default the mean test accuracy over all environments and sampled episodes of the
evaluation. Rewards are listed, too, but each mode has its own scale: they are compared within a mode only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord, RunRef
from esper_ab.journal.fold import History, RunHistory


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One run in numbers; None where it has not got that far or the number does not exist."""

    run: RunRef
    endpoint: float | None  # declared by the plan, percent; the number that is compared
    held_out_accuracy: float | None  # of hosts grown by the trained policy's sampled actions, percent
    greedy_accuracy: float | None  # of hosts grown by its greedy actions, percent
    params_added: float | None  # mean per host, at the end of an evaluation episode
    gain_per_kparam: float | None  # points above the never-grown host per 1,000 added parameters; needs a `wait` group
    fossilized: float | None  # mean per host
    pruned: float | None
    diverged: float | None  # share of evaluation hosts
    entropy_change: float | None  # nats: last tenth of the episodes minus the first
    training_area: float | None  # mean held-out accuracy over all training episodes
    rewards: dict[str, float | None]  # evaluation reward under every mode
    digest: str | None  # of the evaluation record


def mean(values: Iterable[float | None]) -> float | None:
    """Return the exactly rounded mean of the values that are not None; None without any, or where one is not finite."""
    return _finite_mean([value for value in values if value is not None])


def mean_known(values: Iterable[float]) -> float | None:
    """Return the exactly rounded mean of the values that are not NaN (absent in `Columns`); None without any."""
    return _finite_mean([value for value in values if value == value])


def _finite_mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values and all(map(math.isfinite, values)) else None


def episode_mean(record: EpisodeRecord, value: Callable[[EnvEpisode], float | None]) -> float | None:
    """Return the mean of `value` over the environments of one episode."""
    return mean(value(env) for env in record.envs)


def held_out_accuracy(record: EpisodeRecord | EvaluationRecord | None) -> float | None:
    """Return the mean held-out accuracy of a record's hosts, percent; of an evaluation, where actions were sampled."""
    if isinstance(record, EpisodeRecord):
        return episode_mean(record, lambda env: env.held_out_accuracy)
    return _evaluated(record, "sampled", lambda env: env.held_out_accuracy)


def endpoint(run: RunHistory, declared: str) -> float | None:
    """Return the endpoint of one run, percent; `declared` as in the design.

    None until all its records exist, or where it is no finite number.
    """
    if declared == "evaluation":
        return held_out_accuracy(run.evaluation)
    curve = run.columns.of("accuracy")
    if len(curve) < run.spec.episodes:
        return None
    return mean_known(curve[-max(1, math.ceil(len(curve) / 10)) :] if declared == "last-tenth" else curve)


def entropy_change(run: RunHistory) -> float | None:
    """Return mean policy entropy of the last tenth of the episodes minus the first, nats; None below two episodes."""
    columns = run.columns
    entropies = [value for value, learns in zip(columns.of("entropy"), columns.of("learns"), strict=True) if learns]
    if len(entropies) < 2:
        return None
    part = max(1, math.ceil(len(entropies) / 10))
    first, last = mean_known(entropies[:part]), mean_known(entropies[-part:])
    return None if first is None or last is None else last - first


def outcomes(history: History) -> dict[str, RunOutcome]:
    """Return the outcome of every run by name, in plan order."""
    floors = _floors(history)
    declared = history.design.endpoint
    return {name: _outcome(run, declared, floors.get(run.ref.replicate)) for name, run in history.runs.items()}


def _evaluated(
    evaluation: EvaluationRecord | None, actions: str, value: Callable[[EnvEpisode], float | None]
) -> float | None:
    if evaluation is None:
        return None
    return mean(value(host.outcome) for host in evaluation.hosts if host.actions == actions)


def _floors(history: History) -> dict[int, float]:
    """Return by replicate the endpoint of the never-grown host, that is of the group with controller `wait`."""
    found: dict[int, float] = {}
    for run in history.runs.values():
        accuracy = held_out_accuracy(run.evaluation)
        if run.spec.settings.controller.name == "wait" and accuracy is not None:
            found[run.ref.replicate] = accuracy
    return found


def _outcome(run: RunHistory, declared: str, floor: float | None) -> RunOutcome:
    evaluation = run.evaluation
    accuracy = held_out_accuracy(evaluation)
    sampled = partial(_evaluated, evaluation, "sampled")
    added = sampled(lambda env: env.params_added)
    gain = (accuracy - floor) / (added / 1000) if accuracy is not None and floor is not None and added else None
    return RunOutcome(
        run=run.ref, endpoint=endpoint(run, declared), held_out_accuracy=accuracy,
        greedy_accuracy=_evaluated(evaluation, "greedy", lambda env: env.held_out_accuracy), params_added=added,
        gain_per_kparam=gain, fossilized=sampled(lambda env: env.fossilized), pruned=sampled(lambda env: env.pruned),
        diverged=sampled(lambda env: float(env.diverged)), entropy_change=entropy_change(run),
        training_area=mean_known(run.columns.of("accuracy")), rewards=_rewards(evaluation),
        digest=evaluation.digest if evaluation else None,
    )


def _rewards(evaluation: EvaluationRecord | None) -> dict[str, float | None]:
    if evaluation is None:
        return {}
    sampled = [host.rewards for host in evaluation.hosts if host.actions == "sampled"]
    modes = sorted({mode for rewards in sampled for mode in rewards})
    return {mode: mean(rewards.get(mode) for rewards in sampled) for mode in modes}
