"""How much memory of a GPU a run needs, and whether a plan's runs fit. Pure.

    run = FIXED + all splits + n · ENV + the larger of COPIES · n · batch · values · 4 bytes and a validation's share

n: environments on the GPU, which all train side by side there; values: of one forward pass of one bare host on one
sample. FIXED is CUDA with its libraries' workspaces. A validation comes in pieces that are a share of the GPU's memory.
tests/unit/workers/layers/test_device.py holds the last two terms against the tensors of a training step and of a
validation; what CUDA itself takes was never measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from esper_ab.contracts.machine import Machine, TaskFacts
from esper_ab.contracts.messages import Lane
from esper_ab.settings.experiment import ResolvedExperiment

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
                f"{runs * each / 2**30:.1f} GiB ({shared}docs/scaling.md, Memory): fewer --n-envs or a smaller "
                "growth.batch_size need less."
            )
    return ""
