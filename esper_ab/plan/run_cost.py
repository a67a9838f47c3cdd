"""The cost of one run that trains alone, and what its parts have in common. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from esper_ab.contracts.evaluation import greedy_episodes
from esper_ab.contracts.machine import TaskFacts
from esper_ab.plan.gpu_memory import FLOAT_BYTES
from esper_ab.settings.experiment import ResolvedExperiment

WORKER_BYTES = 400 << 20  # Python, torch, its threads
GUARD_BYTES = 80 << 20  # a worker that only guards a command: Python without torch
DECISION_S = 1e-3  # a policy's decision for all environments, with its share of the update
_COPIES = 7  # most copies of a rollout's observations in a worker that learns from them
# Matrices of hidden x hidden in a policy: three of the heads and one of the critic, and eight of the LSTM. The peak
# memory of a worker is 13 copies of them (measured with 1,024 and 2,048 hidden units, with and without LSTM).
_MATRICES = 4
_LSTM_MATRICES = 8
_POLICY_COPIES = 13


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The cost of a run that trains alone."""

    step_s: float  # a step of all environments
    run_s: float
    memory_bytes: int
    basis: str  # one sentence on the source of the numbers
    longest_times: float = 0.0  # how many times as long the run may take at most; 0: unknown


def policy_bytes(experiment: ResolvedExperiment) -> int:
    """Return the bytes needed by the largest policy that learns, including its optimiser."""
    largest_size = 0
    for group in experiment.groups:
        if group.settings.has_policy:
            policy = group.settings.policy
            matrices = _MATRICES
            if policy.memory == "lstm":
                matrices += _LSTM_MATRICES * (2 if policy.trunk == "separate" else 1)
            largest_size = max(largest_size, matrices * policy.hidden**2)
    return _POLICY_COPIES * FLOAT_BYTES * largest_size


def observation_bytes(experiment: ResolvedExperiment, task: TaskFacts, rollout: int, other_copies: int = 0) -> int:
    """Return the bytes of the copies that a worker keeps of the observations of a rollout of `rollout` steps.

    `other_copies`: copies of single observations, beside the stacks of them that policies learn from.
    """
    frames = [group.settings.policy.frame_stack for group in experiment.groups if group.settings.has_policy]
    copies = other_copies + _COPIES * max(frames, default=0)
    return copies * rollout * experiment.n_envs * task.observation_width * FLOAT_BYTES


def played_episodes(experiment: ResolvedExperiment) -> float:
    """Return the number of episodes per environment of a run, including evaluation episodes."""
    evaluated_episodes = experiment.eval_episodes + greedy_episodes(experiment.eval_episodes, experiment.n_envs)
    return experiment.episodes + evaluated_episodes / experiment.n_envs
