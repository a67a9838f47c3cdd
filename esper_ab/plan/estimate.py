"""Rough memory and time of an experiment, from the cost of a run that trains alone. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from esper_ab.contracts.kinds_of_task import of_kind
from esper_ab.contracts.machine import Machine
from esper_ab.contracts.settings import Settings
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.kind import EstimateKind
from esper_ab.settings.experiment import ResolvedExperiment

_SHORT_S = 10  # estimates are no more precise than this


class Estimate(Settings, frozen=True, kw_only=True):
    """Estimated cost of an experiment."""

    duration_s: float  # includes the start of the workers, not the report
    longest_s: float = 0.0  # the same, if all episodes take as many steps as allowed; 0: equal to `duration_s`
    on_cpu_s: float = 0.0  # the same on the CPU, if GPUs were chosen by default; 0: not estimated
    start_up_s: float  # part of duration_s, until the first worker trains
    step_s: float  # one step of one run while the others run (growth: a host epoch), or a trainer's point
    memory_bytes: int  # of all workers that run at the same time
    basis: str  # one sentence on the source of the numbers


def estimate(experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> Estimate:
    """Estimate the duration and memory of all runs; the blocks of a lane set train one after the other."""
    cost_of_run = of_kind(machine.task(experiment.task).kind, EstimateKind).run_cost(experiment, lanes, machine)
    cores = max(1, len(machine.names("cpu")))
    queue = float(len(experiment.groups))  # runs that wait for one another
    if experiment.placement == "spread":
        busy_lanes = sum(lane.devices[0].startswith("cpu:") for lane in lanes)
        queue = max(1.0, busy_lanes * experiment.arithmetic.threads / cores)
    parallel_blocks = max(1, len(lanes) // len(experiment.groups))
    start_up_s = machine.start_s * max(1.0, len(lanes) / cores)  # until all workers have loaded torch
    cost = Estimate(
        duration_s=start_up_s + queue * cost_of_run.run_s * math.ceil(experiment.seeds / parallel_blocks),
        start_up_s=start_up_s,
        step_s=queue * cost_of_run.step_s,
        memory_bytes=len(lanes) * cost_of_run.memory_bytes,
        basis=cost_of_run.basis,
    )
    if not cost_of_run.longest_times:
        return cost
    extra_s = (cost.duration_s - cost.start_up_s) * (cost_of_run.longest_times - 1.0)
    return msgspec.structs.replace(cost, longest_s=cost.duration_s + extra_s)


def duration(seconds: float) -> str:
    """Return an estimated duration in words."""
    if seconds < _SHORT_S:
        return f"under {_SHORT_S} s"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    if seconds < 5400:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"
