"""Rough memory and time of an experiment, from the task's size and the machine's measured speed. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from esper_ab.contracts.evaluation import greedy_episodes
from esper_ab.contracts.kinds_of_task import GROWTH, is_own_outcome
from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.gpu_memory import ENV_BYTES, FLOAT_BYTES
from esper_ab.settings.experiment import ResolvedExperiment

_PASSES = 3  # forward, and a backward pass that costs about two
_PASSES_OF_GPU = 4 / 3  # cost of a minibatch of a validation with counterfactuals, in minibatches of training


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Costs of one way to train hosts, relative to the measured speed."""

    value: float  # multiply-adds that take as long as one activation value, in each pass
    validated: float  # forward passes per sample of a validation with counterfactuals
    step_s: float = 0.0  # per optimiser step, whatever its size


NATIVE = Rates(value=30, validated=0.5, step_s=0.5e-3)
TORCH = Rates(value=150, validated=4.0, step_s=15e-3)
_WORKER_BYTES = 400 << 20  # Python, torch, its threads
_COPIES = 7  # most copies of a rollout's observations in a worker that learns from them
# Matrices of hidden x hidden in a policy: three of the heads and one of the critic, and eight of the LSTM. The peak
# memory of a worker is 13 copies of them (measured with 1,024 and 2,048 hidden units, with and without LSTM).
_MATRICES = 4
_LSTM_MATRICES = 8
_POLICY_COPIES = 13
_SHORT_S = 10  # estimates are no more precise than this
_DECISION_S = 1e-3  # a policy's decision for all environments, with its share of the update


class Estimate(Settings, frozen=True, kw_only=True):
    """Estimated cost of an experiment."""

    duration_s: float  # includes the start of the workers, not the report
    longest_s: float = 0.0  # the same, if Gymnasium episodes take as many steps as allowed; 0: equal to `duration_s`
    on_cpu_s: float = 0.0  # the same on the CPU, if GPUs were chosen by default; 0: not estimated
    start_up_s: float  # part of duration_s, until the first worker trains
    step_s: float  # one step of one run while the others run (growth: a host epoch), or a trainer's point
    memory_bytes: int  # of all workers that run at the same time
    basis: str  # one sentence on the source of the numbers


@dataclass(frozen=True, kw_only=True)
class RunCost:
    """The cost of a run that trains alone."""

    step_s: float
    run_s: float
    memory_bytes: int


def epoch_s(task: TaskFacts, n_envs: int, batch_size: int, speed: float, rates: Rates) -> float:
    """Return the seconds for one host epoch and its validation, for `n_envs` environments that share one device.

    `speed` is in multiply-adds per second, as measured by the preflight.
    """
    trained, validated, _ = task.sizes
    each = task.host_multiply_adds + rates.value * task.host_values
    work = n_envs * (_PASSES * trained + rates.validated * validated) * each
    return math.ceil(trained / batch_size) * rates.step_s + work / speed


def estimate(experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> Estimate:
    """Estimate the duration and memory of all runs.

    The environments of a run train at the same time, and the blocks of a lane set train one after the other.
    """
    if machine.trainer is not None:
        return _trainer(experiment, lanes, machine, machine.trainer)
    task = machine.task(experiment.task)
    if task.kind != GROWTH:
        return _environments(experiment, lanes, machine, task)
    batch = min(group.settings.growth.batch_size for group in experiment.groups)
    on_gpu = any(device.startswith("cuda") for lane in lanes for device in lane.devices)
    speed = machine.multiply_adds_per_s
    devices = experiment.devices_per_run
    basis = f"rough: {speed / 1e9:.1f} billion multiply-adds per second measured, hosts assumed to be bare"
    if on_gpu:
        step_s = devices * max(device.step_s for device in machine.devices)  # one process launches kernels for all
        host_epoch_s = step_s * (math.ceil(task.sizes[0] / batch) + _PASSES_OF_GPU * task.sizes[1] / batch)
        basis = f"rough: {1e3 * step_s:.1f} ms measured for a minibatch on a GPU, with a seed module in every slot"
    else:  # the devices of a run take turns
        rates = TORCH if experiment.arithmetic.host_kernel == "torch" else NATIVE
        rates = replace(rates, step_s=devices * rates.step_s)
        host_epoch_s = epoch_s(task, experiment.n_envs, batch, speed, rates)
    data = sum(task.sizes) * task.sample_values * FLOAT_BYTES
    alone = RunCost(
        step_s=host_epoch_s,
        run_s=host_epoch_s * experiment.steps * _episodes(experiment),
        memory_bytes=_WORKER_BYTES + _policy_bytes(experiment) + data + experiment.n_envs * ENV_BYTES,
    )
    return _all_runs(experiment, lanes, machine, alone, basis)


def _environments(experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine, task: TaskFacts) -> Estimate:
    """Estimate the cost from the measured time of an environment step, assuming episodes as long as in the preflight.

    The estimate of memory assumes episodes of the longest allowed length.
    """
    step_s = experiment.n_envs * task.step_s + _DECISION_S
    limit = min(experiment.steps, task.episode_steps or experiment.steps)
    rollout = experiment.steps  # steps of the longest rollout
    taken = experiment.steps
    if all(group.settings.gym.rollout == "episodes" for group in experiment.groups):  # rollouts end with their episodes
        rollout = limit
        taken = min(limit, task.seen_steps or limit)
    assumed = f"assuming episodes of {taken} steps; shorter ones take less"
    if taken < limit:
        longest = f"up to {limit / taken:.0f} times as long if policies last {limit}"
        assumed = f"assuming episodes of {taken} steps, as with random actions; {longest}"
    alone = RunCost(
        step_s=step_s,
        run_s=step_s * taken * _episodes(experiment),
        memory_bytes=_WORKER_BYTES + _policy_bytes(experiment) + _observation_bytes(experiment, task, rollout),
    )
    basis = f"rough: {1 / task.step_s:.0f} steps of an environment per second measured, {assumed}"
    cost = _all_runs(experiment, lanes, machine, alone, basis)
    more = (cost.duration_s - cost.start_up_s) * (limit / taken - 1.0)
    return msgspec.structs.replace(cost, longest_s=cost.duration_s + more)


def _observation_bytes(experiment: ResolvedExperiment, task: TaskFacts, rollout: int) -> int:
    """Return the bytes of the copies that a worker keeps of the observations of a rollout of `rollout` steps."""
    copies = 0
    if any(group.settings.has_policy for group in experiment.groups):
        copies += _COPIES
    if is_own_outcome(experiment.outcome):
        copies += 1
    return copies * rollout * experiment.n_envs * task.observation_width * FLOAT_BYTES


def _policy_bytes(experiment: ResolvedExperiment) -> int:
    """Return the bytes needed by the largest policy that learns, including its optimiser."""
    largest = 0
    for group in experiment.groups:
        if group.settings.has_policy:
            policy = group.settings.policy
            matrices = _MATRICES
            if policy.memory == "lstm":
                matrices += _LSTM_MATRICES
            largest = max(largest, matrices * policy.hidden**2)
    return _POLICY_COPIES * FLOAT_BYTES * largest


def _episodes(experiment: ResolvedExperiment) -> float:
    """Return the number of episodes per environment of a run, including evaluation episodes."""
    evaluated = experiment.eval_episodes + greedy_episodes(experiment.eval_episodes, experiment.n_envs)
    return experiment.episodes + evaluated / experiment.n_envs


def _trainer(experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine, facts: TrainerFacts) -> Estimate:
    """Estimate the cost from the times in the rehearsal; a step of the estimate is a point of the trainer."""
    run_s = facts.point_s * experiment.episodes + facts.evaluate_s
    short = f", which was shortened by {facts.shortened}" if facts.shortened else ""
    basis = f"rough: runs assumed to take as long as in the rehearsal{short}; the trainer's own memory is not included"
    alone = RunCost(step_s=facts.point_s, run_s=run_s, memory_bytes=_WORKER_BYTES)
    return _all_runs(experiment, lanes, machine, alone, basis)


def _all_runs(
    experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine, alone: RunCost, basis: str
) -> Estimate:
    """Return the estimate for all runs, derived from a run that trains alone."""
    cores = max(1, len(machine.names("cpu")))
    queue = float(len(experiment.groups))  # runs that wait for one another
    if experiment.placement == "spread":
        busy = sum(lane.devices[0].startswith("cpu:") for lane in lanes)
        queue = max(1.0, busy * experiment.arithmetic.threads / cores)
    at_once = max(1, len(lanes) // len(experiment.groups))
    start_up_s = machine.start_s * max(1.0, len(lanes) / cores)  # until all workers have loaded torch
    return Estimate(
        duration_s=start_up_s + queue * alone.run_s * math.ceil(experiment.seeds / at_once),
        start_up_s=start_up_s,
        step_s=queue * alone.step_s,
        memory_bytes=len(lanes) * alone.memory_bytes,
        basis=basis,
    )


def duration(seconds: float) -> str:
    """Return an estimated duration in words."""
    if seconds < _SHORT_S:
        return f"under {_SHORT_S} s"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
