"""The numbers in records, by name, for trackers. Pure. Missing values (None) are left out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from esper_ab.contracts.records import EpisodeRecord, EvaluationRecord, PPOUpdate
from esper_ab.contracts.worker_order import RunSpec
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.fold import History
from esper_ab.journal.outcomes import episode_mean, mean_outcome, measured, outcomes
from esper_ab.trackers.tracker import Scalar

if TYPE_CHECKING:
    from esper_ab.verdict.comparison import Comparison

_ID_DIGITS = 16


def identity(*parts: str) -> str:
    """Return 16 hexadecimal digits of a hash of `parts`."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_ID_DIGITS]


def experiment_id(first_event: ExperimentStarted, begin_time: str) -> str:
    """Return an id that is equal for all copies of a journal and new for each execution of a plan.

    `begin_time`: the journal's first wall time.
    """
    return identity(first_event.plan.digest, begin_time)


def episode_numbers(record: EpisodeRecord) -> dict[str, float]:
    """Return the numbers of one training episode: means over environments, numbers of the policy update, wall times."""
    numbers = {
        "train/outcome": mean_outcome(record),
        "train/reward": episode_mean(record, lambda env: env.reward_sum),
        "train/failed": episode_mean(record, lambda env: float(env.failed)),  # share
    }
    if record.envs:
        for name in record.envs[0].measures:
            numbers[f"measure/{name}"] = episode_mean(record, partial(measured, name))
    if record.ppo is not None:
        numbers |= _update_numbers(record.ppo)
    numbers |= {f"time/{name}": seconds for name, seconds in msgspec.structs.asdict(record.timing).items()}
    return without_missing(numbers)


def _update_numbers(ppo: PPOUpdate) -> dict[str, float | None]:
    """Return the numbers of a policy update: those of the whole policy, then those of each action head."""
    diagnostics = msgspec.structs.asdict(ppo)
    heads = diagnostics.pop("heads")
    numbers: dict[str, float | None] = {f"ppo/{name}": value for name, value in diagnostics.items()}
    for head, use in heads.items():
        numbers[f"ppo/head/{head}/entropy"] = use.entropy
        numbers[f"ppo/head/{head}/learnable"] = use.learnable
    return numbers


def evaluation_numbers(history: History, run: str) -> dict[str, float]:
    """Return the evaluation results of one run, in the report's units."""
    result = outcomes(replace(history, runs={run: history.runs[run]}))[run]
    numbers = {
        "evaluation/outcome": result.outcome,
        "evaluation/evaluated": result.evaluated,
        "evaluation/greedy": result.greedy,
        "evaluation/failed": result.failed,
        "evaluation/entropy_change": result.entropy_change,
        "evaluation/training_area": result.training_area,
    }
    numbers |= {f"evaluation/measure/{name}": value for name, value in result.measures.items()}
    numbers |= {f"evaluation/reward/{mode}": value for mode, value in result.rewards.items()}
    return without_missing(numbers)


def evaluation_words(evaluation: EvaluationRecord) -> dict[str, str]:
    """Return the name and hash of the policy of one run, and the digest of its records."""
    return {
        "policy_file": evaluation.policy_file,
        "policy_sha256": evaluation.policy_sha256,
        "digest": evaluation.digest,
    }


def comparison_words(comparison: Comparison) -> dict[str, str]:
    return {
        "verdict": str(comparison.verdict),
        "headline": comparison.headline,
        "sentence": comparison.sentence,
        "warnings": " ".join(comparison.warnings),
    }


def comparison_numbers(comparison: Comparison) -> dict[str, float | None]:
    """Return the estimate, its interval and the number of pairs that they rest on, and Hedges' g."""
    hedges = comparison.descriptive["hedges_g"]
    return {
        "estimate": comparison.estimate,
        "low": comparison.low,
        "high": comparison.high,
        "used": comparison.used,
        "hedges_g": None if hedges is None else hedges.g,
    }


def run_settings(history: History, spec: RunSpec) -> dict[str, Scalar]:
    """Return all settings of one run, by dotted key."""
    return {
        "group": spec.ref.group_id,
        "replicate": spec.ref.replicate,
        "device": spec.ref.device,
        "experiment": history.plan.experiment.name,
        "plan": history.plan.digest,
        "rng_seed": spec.rng_seed,
        "task": spec.task,
        "n_envs": spec.n_envs,
        "episodes": spec.episodes,
        "steps": spec.steps,
        "eval_episodes": spec.eval_episodes,
        "rng_label": spec.rng_label,
        "slots": ",".join(spec.slots),
        **dict(_flat(msgspec.to_builtins(spec.settings))),
        **dict(_flat({"arithmetic": msgspec.to_builtins(spec.arithmetic)})),
    }


def experiment_settings(history: History) -> dict[str, Scalar]:
    """Return all settings common to the groups, by dotted key, and the groups' differences."""
    tree = msgspec.to_builtins(history.plan.experiment)
    tree["groups"] = ",".join(history.groups)
    differences = {
        f"differs.{difference.key}": json.dumps(difference.values) for difference in history.plan.differences
    }
    return {"plan": history.plan.digest, **dict(_flat(tree)), **differences}


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _scalar(value)


def _scalar(value: Any) -> Scalar:
    if isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value)


def without_missing(numbers: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in numbers.items() if value is not None}
