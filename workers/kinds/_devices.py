"""What plans call devices, as torch does on a worker."""

from __future__ import annotations

import torch


def torch_devices(names: tuple[str, ...]) -> dict[str, torch.device]:
    """Map the plan names of one lane to torch devices: the worker sees only its own GPUs, numbered from 0."""
    gpus = [name for name in names if name.startswith("cuda")]
    return {name: torch.device("cuda", gpus.index(name)) if name in gpus else torch.device("cpu") for name in names}
