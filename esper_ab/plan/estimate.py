"""Rough memory and time of an experiment, from the task's size and the machine's measured speed. Pure.

    one host epoch = steps · step_s + work / speed
    work           = n_envs · (3 · train + validated · validation) · (multiply-adds + value · values)

Small hosts are bound by reading and writing activations, not by multiplying: so a value of an activation counts as
`value` multiply-adds. Before the first epoch all workers load torch at the same time, on the cores that there are; how
long that takes is measured with the speed. On a GPU a step takes as long as the preflight measured it there.
Multiply-adds and values are those of one forward pass of one bare host. The rates are fitted to
docs/evidence/benchmarks/hosts.json; docs/evidence/scaling.md shows how far off they are. An estimate, not a promise:
the cost of a grown host depends on what a policy grafts. Expect it to be right within a factor of two or three; the
live view knows better after one episode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from esper_ab.contracts.children import Machine, TaskFacts
from esper_ab.contracts.measures import greedy_episodes
from esper_ab.contracts.messages import Lane
from esper_ab.contracts.settings import GROWTH, Settings, is_own_outcome
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.settings.experiment import ResolvedExperiment

# --- gpu memory ------------------------------------------------------------------------------------------------------
# How much memory of a GPU a run needs, and whether a plan's runs fit. Pure.
#
#     run = FIXED + all splits + n · ENV + the larger of COPIES · n · batch · values · 4 bytes and a validation's share
#
# n: environments on the GPU, which all train side by side there; values: of one forward pass of one bare host on one
# sample. FIXED is CUDA with its libraries' workspaces. A validation comes in pieces that are a share of the GPU's
# memory. tests/unit/workers/layers/test_device.py holds the last two terms against the tensors of a training step and
# of a validation; what CUDA itself takes was never measured.


FIXED_BYTES = 2 << 30
ENV_BYTES = 3 << 19  # parameters, momentum and moments of one environment
COPIES = 7  # of the bare host's activations: with seeds, and their gradients
VALIDATION_SHARE = 16  # of a GPU's memory, for all tensors of a piece
FLOAT_BYTES = 4


def training_bytes(task: TaskFacts, n_envs: int, batch_size: int) -> int:
    """Memory of training `n_envs` environments at the same time, without the fixed part of a run."""
    batch = min(batch_size, task.sizes[0])
    return n_envs * (ENV_BYTES + COPIES * batch * task.host_values * FLOAT_BYTES)


def too_much(experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane]) -> str:
    """One sentence on the first GPU whose runs may not fit, with what would help; "" when all may."""
    task = machine.task(experiment.task)
    batch = max(group.settings.growth.batch_size for group in experiment.groups)
    splits = sum(task.sizes) * task.sample_values * FLOAT_BYTES
    for device in (device for device in machine.devices if device.name.startswith("cuda")):
        trains = training_bytes(task, -(-experiment.n_envs // experiment.devices_per_run), batch)
        each = FIXED_BYTES + splits + max(trains, device.memory_bytes // VALIDATION_SHARE)
        runs = sum(device.name in lane.devices for lane in lanes)
        if runs * each > device.memory_bytes:
            shared = f"{runs} workers share it; " if runs > 1 else ""
            return (
                f"{device.name} has {device.memory_bytes / 2**30:.1f} GiB, and its runs may need about "
                f"{runs * each / 2**30:.1f} GiB ({shared}docs/machine.md, Memory): fewer --n-envs or a "
                "smaller growth.batch_size need less."
            )
    return ""


_PASSES = 3  # forward, and a backward pass that costs about two
_PASSES_OF_GPU = 4 / 3  # a minibatch of a validation with counterfactuals, in minibatches of training


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What a way of training hosts costs, relative to the measured speed."""

    value: float  # multiply-adds that take as long as one value of an activation, in each pass
    validated: float  # a sample of a validation with counterfactuals, in forward passes
    step_s: float = 0.0  # per optimiser step, whatever its size


NATIVE = Rates(value=30, validated=0.5, step_s=0.5e-3)
TORCH = Rates(value=150, validated=4.0, step_s=15e-3)
_WORKER_BYTES = 400 << 20  # Python, torch, its threads
_COPIES = 7  # of all observations of a rollout, at most, in a worker that learns from them
# Matrices of hidden x hidden in a policy: of three groups of heads, of the critic, and eight of the LSTM. At its peak a
# worker takes so many copies of them (measured with 1,024 and 2,048 hidden units, with the LSTM and without).
_MATRICES, _LSTM_MATRICES, _POLICY_COPIES = 4, 8, 13
_DECISION_S = 1e-3  # a policy's decision for all environments, with its share of the update


class Estimate(Settings, frozen=True, kw_only=True):
    """Estimated cost of an experiment."""

    duration_s: float  # with the start of the workers; without the report
    longest_s: float = 0.0  # the same, if episodes of Gymnasium last as long as they may; 0: as `duration_s`
    start_up_s: float  # of that, until the first worker trains
    step_s: float  # one step of one run beside the others (growth: a host epoch), or a trainer's point
    memory_bytes: int  # of all workers that live at the same time
    basis: str  # one sentence: what the numbers rest on


def epoch_s(task: TaskFacts, n_envs: int, batch_size: int, speed: float, rates: Rates) -> float:
    """Seconds of one host epoch and its validation, of `n_envs` environments side by side on one device.

    `speed`: multiply-adds per second, as the preflight measures it.
    """
    trained, validated, _ = task.sizes
    each = task.host_multiply_adds + rates.value * task.host_values
    work = n_envs * (_PASSES * trained + rates.validated * validated) * each
    return math.ceil(trained / batch_size) * rates.step_s + work / speed


def estimate(experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> Estimate:
    """Estimate duration and memory of all runs; [E] environments train together, blocks in turn on each lane set."""
    if machine.trainer is not None:
        return _of_trainer(experiment, lanes, machine, machine.trainer)
    task = machine.task(experiment.task)
    if task.kind != GROWTH:
        return _of_environments(experiment, lanes, machine, task)
    batch = min(group.settings.growth.batch_size for group in experiment.groups)
    on_gpu = any(device.startswith("cuda") for lane in lanes for device in lane.devices)
    speed, devices = machine.multiply_adds_per_s, experiment.devices_per_run
    basis = f"rough: {speed / 1e9:.1f} billion multiply-adds per second measured, hosts taken as bare"
    if on_gpu:
        step_s = devices * max(device.step_s for device in machine.devices)  # one interpreter launches for all
        host_epoch_s = step_s * (math.ceil(task.sizes[0] / batch) + _PASSES_OF_GPU * task.sizes[1] / batch)
        basis = f"rough: {1e3 * step_s:.1f} ms measured for a minibatch on a GPU, with a seed module in every slot"
    else:  # the devices of a run take turns
        rates = TORCH if experiment.arithmetic.host_kernel == "torch" else NATIVE
        rates = replace(rates, step_s=devices * rates.step_s)
        host_epoch_s = epoch_s(task, experiment.n_envs, batch, speed, rates)
    data = sum(task.sizes) * task.sample_values * FLOAT_BYTES
    each = _WORKER_BYTES + _policy_bytes(experiment) + data + experiment.n_envs * ENV_BYTES
    run_s = host_epoch_s * experiment.steps * _episodes(experiment)
    return _of_all(experiment, lanes, machine, (host_epoch_s, run_s, each), basis)


def _of_environments(
    experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine, task: TaskFacts
) -> Estimate:
    """Estimate from the measured time of an environment's step; episodes are taken to last as the preflight's did.

    Their memory is that of episodes that last as long as they may.
    """
    step_s = experiment.n_envs * task.step_s + _DECISION_S
    limit = min(experiment.steps, task.episode_steps or experiment.steps)
    ends = all(group.settings.gym.rollout == "episodes" for group in experiment.groups)  # with the episodes in it
    taken = min(limit, task.seen_steps or limit) if ends else experiment.steps
    seen = f"episodes taken as {taken} steps long, as that of random actions was" if taken < limit else ""
    basis = (
        f"rough: {1 / task.step_s:.0f} steps of an environment per second measured, "
        f"{seen or f'episodes taken as {taken} steps long; shorter ones take less'}"
        f"{f'; up to {limit / taken:.0f} times as long where policies last {limit}' if seen else ''}"
    )
    shown = (limit if ends else experiment.steps) * experiment.n_envs * task.observation_width * FLOAT_BYTES
    learns = any(group.settings.has_policy for group in experiment.groups)
    copies = _COPIES * learns + is_own_outcome(experiment.outcome)
    each = _WORKER_BYTES + _policy_bytes(experiment) + copies * shown
    found = _of_all(experiment, lanes, machine, (step_s, step_s * taken * _episodes(experiment), each), basis)
    more = (found.duration_s - found.start_up_s) * (limit / taken - 1.0)
    return msgspec.structs.replace(found, longest_s=found.duration_s + more)


def _policy_bytes(experiment: ResolvedExperiment) -> int:
    """Return the memory of the largest policy that learns, with its optimiser."""
    sizes = (
        (_MATRICES + _LSTM_MATRICES * (group.settings.policy.memory == "lstm")) * group.settings.policy.hidden**2
        for group in experiment.groups if group.settings.has_policy
    )  # fmt: skip
    return _POLICY_COPIES * FLOAT_BYTES * max(sizes, default=0)


def _episodes(experiment: ResolvedExperiment) -> float:
    """Return the episodes of all environments in a run, with those of its evaluation."""
    evaluated = experiment.eval_episodes + greedy_episodes(experiment.eval_episodes, experiment.n_envs)
    return experiment.episodes + evaluated / experiment.n_envs


def _of_trainer(
    experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine, facts: TrainerFacts
) -> Estimate:
    """Estimate from what the rehearsal took; a step is a point, between which nothing has to be heard."""
    run_s = facts.point_s * experiment.episodes + facts.evaluate_s
    short = f", which was shortened by {facts.shortened}" if facts.shortened else ""
    basis = f"rough: as long as in the rehearsal{short}; memory without that of the trainer"
    return _of_all(experiment, lanes, machine, (facts.point_s, run_s, _WORKER_BYTES), basis)


def _of_all(
    experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine, alone: tuple[float, float, int], basis: str
) -> Estimate:
    """Return the estimate of all runs; `alone`: seconds of a step and of a run, and bytes, of one run by itself."""
    step_s, run_s, each = alone
    cores, queue = max(1, len(machine.names("cpu"))), float(len(experiment.groups))  # runs that wait for one another
    if experiment.placement == "spread":
        busy = sum(lane.devices[0].startswith("cpu:") for lane in lanes)
        queue = max(1.0, busy * experiment.arithmetic.threads / cores)
    at_once = max(1, len(lanes) // len(experiment.groups))
    start_up_s = machine.start_s * max(1.0, len(lanes) / cores)  # until all workers have loaded torch
    return Estimate(
        duration_s=start_up_s + queue * run_s * math.ceil(experiment.seeds / at_once), start_up_s=start_up_s,
        step_s=queue * step_s, memory_bytes=len(lanes) * each, basis=basis,
    )  # fmt: skip
