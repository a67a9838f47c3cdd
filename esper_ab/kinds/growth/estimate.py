"""The cost of a run that grows networks, from the size of its task and the measured speed of the machine. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.worker_order import Lane
from esper_ab.plan.gpu_memory import ENV_BYTES, FLOAT_BYTES
from esper_ab.plan.kind import EstimateKind
from esper_ab.plan.run_cost import WORKER_BYTES, RunCost, played_episodes, policy_bytes
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


def epoch_s(task: TaskFacts, n_envs: int, batch_size: int, speed: float, rates: Rates) -> float:
    """Return the seconds for one host epoch and its validation, for `n_envs` environments that share one device.

    `speed` is in multiply-adds per second, as measured by the preflight.
    """
    training_samples, validation_samples, _ = task.sizes
    unit_work = task.host_multiply_adds + rates.value * task.host_values
    work = n_envs * (_PASSES * training_samples + rates.validated * validation_samples) * unit_work
    return math.ceil(training_samples / batch_size) * rates.step_s + work / speed


class GrowthEstimate(EstimateKind):
    """Estimates of host epochs. The environments of a run train at the same time."""

    def run_cost(self, experiment: ResolvedExperiment, lanes: Sequence[Lane], machine: Machine) -> RunCost:
        """Estimate a run from a measured minibatch on a GPU, or from the measured speed of a core."""
        task = machine.task(experiment.task)
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
        return RunCost(
            step_s=host_epoch_s,
            run_s=host_epoch_s * experiment.steps * played_episodes(experiment),
            memory_bytes=WORKER_BYTES + policy_bytes(experiment) + data + experiment.n_envs * ENV_BYTES,
            basis=basis,
        )


KIND = GrowthEstimate()
