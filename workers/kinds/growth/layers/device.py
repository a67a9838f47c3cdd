"""Properties of the computing device. All code that depends on the kind of device asks here.

A test can therefore run the GPU code path on a CPU and compare its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch

_CACHED_BYTES = 4 << 20
_UNKNOWN_BYTES = 8 << 30  # memory of a device that is neither a CPU nor CUDA's
PIECE = 64  # the widest tensor gets 1/64 of a GPU's memory: a pass holds several, and workers may share a GPU


def is_cpu(device: torch.device) -> bool:
    """Return True for a CPU, where kernels take any layout, loops follow memory order and calls are cheap."""
    return device.type == "cpu"


def room(device: torch.device) -> int:
    """Return the maximum bytes of the widest tensor in a pass that may be done in pieces.

    On a CPU this is the size of the cache; on a GPU, where each piece costs kernel launches, it is a share of the GPU's
    memory. The share is of total memory, not of free memory: the size of a piece affects the last digits of results, so
    it must not depend on other processes.
    """
    if is_cpu(device):
        return _CACHED_BYTES
    if device.type == "cuda":
        total_bytes = torch.cuda.get_device_properties(device).total_memory
    else:
        total_bytes = _UNKNOWN_BYTES
    return int(total_bytes // PIECE)


def seconds(device: torch.device, work: Callable[[], object]) -> float:
    """Return how many seconds `work` takes on `device`. It is run twice, and the first run is only a warm-up.

    The clock starts when the device is idle, and stops when everything that `work` launched is done. On a GPU,
    launching takes only a fraction of the time.
    """
    wait = getattr(torch, device.type).synchronize
    work()
    wait(device)
    begin_s = perf_counter()
    work()
    wait(device)
    return perf_counter() - begin_s
