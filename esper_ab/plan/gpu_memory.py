"""The GPU memory that a run needs, and whether a plan's runs fit. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.worker_order import Lane
from esper_ab.settings.experiment import ResolvedExperiment

FIXED_BYTES = 2 << 30
ENV_BYTES = 3 << 19  # parameters, momentum and moments of one environment
COPIES = 7  # copies of the bare host's activations; covers seed modules, and gradients
VALIDATION_SHARE = 16  # fraction of a GPU's memory, 1 / 16, for all tensors of a piece
FLOAT_BYTES = 4


def training_bytes(task: TaskFacts, n_envs: int, batch_size: int) -> int:
    """Return the bytes needed to train `n_envs` environments at the same time, without the fixed memory of a run."""
    batch = min(batch_size, task.sizes[0])
    return n_envs * (ENV_BYTES + COPIES * batch * task.host_values * FLOAT_BYTES)


def too_much(experiment: ResolvedExperiment, machine: Machine, lanes: Sequence[Lane]) -> str:
    """Warn about the first GPU whose runs may not fit, in one sentence with a remedy; "" if all runs should fit."""
    task = machine.task(experiment.task)
    batch = max(group.settings.growth.batch_size for group in experiment.groups)
    splits = sum(task.sizes) * task.sample_values * FLOAT_BYTES
    n_envs = math.ceil(experiment.n_envs / experiment.devices_per_run)  # of a run on one device
    training_size = training_bytes(task, n_envs, batch)
    for device in machine.devices:
        if not device.name.startswith("cuda"):
            continue
        bytes_per_run = FIXED_BYTES + splits + max(training_size, device.memory_bytes // VALIDATION_SHARE)
        runs = sum(device.name in lane.devices for lane in lanes)
        if runs * bytes_per_run > device.memory_bytes:
            device_words = f"{device.name} has {device.memory_bytes / 2**30:.1f} GiB"
            needs_words = f"its runs may need about {runs * bytes_per_run / 2**30:.1f} GiB"
            sharing_words = f" ({runs} workers share it)" if runs > 1 else ""
            return f"{device_words}, but {needs_words}{sharing_words}: reduce --n-envs or growth.batch_size."
    return ""
