"""Finds the devices that torch sees, with their names, and sets torch's options for reproducible results."""

from __future__ import annotations

import os
from typing import Any

import torch

from esper_ab.contracts.gpu_names import gpu_names, is_beyond_one_instance
from esper_ab.contracts.settings import Arithmetic
from workers.devices import pinned


def seen_gpus(visible_variable: str | None) -> list[tuple[str, Any]]:
    """Return the name and the torch properties of each NVIDIA GPU, in order.

    `visible_variable`: CUDA_VISIBLE_DEVICES, if set.

    The list is empty if `visible_variable` names a MIG instance together with any further device.
    """
    count = 0
    if torch.version.cuda and not is_beyond_one_instance(visible_variable):
        count = torch.cuda.device_count()
    gpus = [torch.cuda.get_device_properties(index) for index in range(count)]
    names = gpu_names([str(gpu.uuid) for gpu in gpus], visible_variable)
    return list(zip(names, gpus, strict=True))


def pin(arithmetic: Arithmetic) -> None:
    """Set threads, determinism and precision of kernels; call before the first GPU work."""
    torch.set_num_threads(arithmetic.threads)
    os.environ.update(pinned.determinism(arithmetic))
    # Equals torch.use_deterministic_algorithms, which takes a second to import torch's compiler.
    torch.set_deterministic_debug_mode("error" if arithmetic.deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # True would write twice
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False


def torch_devices(names: tuple[str, ...]) -> dict[str, torch.device]:
    """Return the torch devices of one lane by plan name; a worker sees only its own GPUs, numbered from 0."""
    return {name: torch.device(torch_name) for name, torch_name in pinned.names_in_worker(names).items()}


def device_here(name: str) -> torch.device:
    """Return the torch device that plans call `name`; ValueError if this machine does not have it."""
    available_devices = ("cpu", *(f"cuda:{index}" for index in range(len(seen_gpus(None)))))
    if name not in available_devices:
        raise ValueError(f"no device {name!r} here; available: {', '.join(available_devices)}")
    return torch.device(name)
