"""Which kind of device computes: every choice between ways to compute that depends on it asks here.

So a test can take a GPU's ways on a CPU, where their numbers can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch

_CACHED_BYTES = 4 << 20
_UNKNOWN_BYTES = 8 << 30  # memory of a device that is neither a CPU nor CUDA's
PIECE = 64  # the widest tensor gets 1/64 of a GPU's memory: a pass holds several, and workers may share a GPU


def is_cpu(device: torch.device) -> bool:
    """Whether `device` is a CPU: its kernels take any layout, loops run along the memory, and a call costs little."""
    return device.type == "cpu"


def room(device: torch.device) -> int:
    """Bytes of the widest tensor of a pass that may be done in pieces.

    On a CPU what its cache holds; on a GPU a share of its memory, because there a piece costs its launches. Of all its
    memory, not of what is free at the time: the size of a piece decides last digits, which no neighbour may do.
    """
    if is_cpu(device):
        return _CACHED_BYTES
    whole = torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else _UNKNOWN_BYTES
    return int(whole // PIECE)


def seconds(device: torch.device, work: Callable[[], object]) -> float:
    """Time `work` on `device`, after a first time that warms up: from when it is idle to when all launched is done.

    A GPU is timed by this alone: to launch takes a fraction of the time.
    """
    wait = getattr(torch, device.type).synchronize
    work()
    wait(device)
    began = perf_counter()
    work()
    wait(device)
    return perf_counter() - began
