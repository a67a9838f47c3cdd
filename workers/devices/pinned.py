"""Environment variables that pin a process (worker, user's command, rehearsal) to devices, threads and determinism.

A library reads the variables when it is imported or first used. This module does not import torch, so that a worker can
set the variables first.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable

from esper_ab.contracts.settings import ProcessArithmetic

_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # torch reads the first since 2.0, the second since 2.9
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def variables(uuids: Iterable[str], arithmetic: ProcessArithmetic) -> dict[str, str]:
    """Return the environment for a process that owns the GPUs `uuids`; "" stands for a device that is not a GPU.

    Unless the user has set allocator options, the CUDA allocator uses expandable segments, because a run's tensors
    change their sizes with every seed.
    """
    allocator = {_ALLOCATOR[0]: "expandable_segments:True"}
    if any(name in os.environ for name in _ALLOCATOR):
        allocator = {}
    return {
        **allocator,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": ",".join(filter(None, uuids)),
        **dict.fromkeys(_THREADS, str(arithmetic.threads)),
        **determinism(arithmetic),
    }


def determinism(arithmetic: ProcessArithmetic) -> dict[str, str]:
    """Return cuBLAS's setting for determinism.

    Without this setting, cuBLAS may vary the order of sums, and torch raises an error.
    """
    if arithmetic.deterministic:
        return {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    return {}


def names_in_worker(names: Iterable[str]) -> dict[str, str]:
    """Return torch's names of one lane's devices, by plan name; a worker sees only its own GPUs, numbered from 0."""
    numbers = itertools.count()
    torch_names = {}
    for name in names:
        torch_names[name] = f"cuda:{next(numbers)}" if name.startswith("cuda") else "cpu"
    return torch_names
