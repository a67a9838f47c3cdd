"""Rough memory and time of a plan, from the task's size and the machine's measured speed. Pure.

An estimate, not a promise: the cost of a grown host depends on what a policy grafts, so it is taken as a fixed multiple
of the bare host's. Expect it to be right within a factor of a few; the live view knows better after one episode.
"""

from __future__ import annotations

import math

from esper_ab.contracts.machine import Machine
from esper_ab.contracts.settings import Settings
from esper_ab.plan import Plan

_BACKWARD = 2  # a backward pass costs about two forward passes
_GROWN = 4  # a host with seeds against the bare host, in multiply-adds and in activations
_CONFIGURATIONS = 4  # of slots switched on and off, in one validation pass
_STEP_OVERHEAD_S = 20e-3  # per optimiser step of a bank: hundreds of small kernels, whatever their size
_WORKER_BYTES = 400 << 20  # Python, torch, its threads
_FLOAT_BYTES = 4


class Estimate(Settings, frozen=True, kw_only=True):
    """What a plan may take."""

    duration_s: float
    memory_bytes: int  # of all workers that live at the same time
    basis: str  # one sentence: what the numbers rest on


def estimate(plan: Plan, machine: Machine) -> Estimate:
    """Duration and memory of the whole plan; [E] environments train together, blocks one after another per lane set."""
    asked = plan.experiment
    task = next(task for task in machine.tasks if task.name == asked.task)
    batch = min(group.settings.growth.batch_size for group in asked.groups)
    trained, validated, _ = task.sizes
    adds_per_step = asked.n_envs * task.host_multiply_adds * _GROWN * (
        trained * (1 + _BACKWARD) + validated * _CONFIGURATIONS
    )
    step_s = adds_per_step / machine.multiply_adds_per_s + math.ceil(trained / batch) * _STEP_OVERHEAD_S
    run_s = step_s * asked.steps * (asked.episodes + 2 * asked.eval_episodes)  # sampled and greedy evaluation
    at_once = max(1, len(plan.lanes) // len(asked.groups))
    return Estimate(
        duration_s=run_s * math.ceil(asked.replicates / at_once) * _queue(plan, machine),
        memory_bytes=len(plan.lanes) * (_WORKER_BYTES + sum(task.sizes) * task.sample_values * _FLOAT_BYTES),
        basis=f"rough: {machine.multiply_adds_per_s / 1e9:.1f} billion multiply-adds per second measured, "
        f"hosts taken as {_GROWN} times their bare size",
    )


def _queue(plan: Plan, machine: Machine) -> float:
    """How many runs wait for one another on a device or a core."""
    asked = plan.experiment
    if asked.placement != "spread":
        return len(asked.groups)
    cpu_lanes = sum(lane.devices[0].startswith("cpu:") for lane in plan.lanes)
    return max(1.0, cpu_lanes * asked.arithmetic.threads / max(1, len(machine.names("cpu"))))
