"""Pins everything that decides the bits of a result in this process: for workers and for commands that repeat a run."""

from __future__ import annotations

import os

import torch

from esper_ab.contracts.settings import Arithmetic
from workers import pinned


def pin(arithmetic: Arithmetic) -> None:
    """Set threads, determinism and precision of kernels; call before the first work on a GPU."""
    torch.set_num_threads(arithmetic.threads)
    os.environ.update(pinned.determinism(arithmetic))
    # Equals torch.use_deterministic_algorithms, which takes a second to import torch's compiler.
    torch.set_deterministic_debug_mode("error" if arithmetic.deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # would write twice
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
