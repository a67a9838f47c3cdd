"""Fixes what decides the bits of a result in this process: for a worker, and for commands that repeat what one did."""

from __future__ import annotations

import os

import torch

from esper_ab.contracts.settings import Arithmetic


def pin(arithmetic: Arithmetic) -> None:
    """Threads, determinism and precision of kernels; before the first work on a GPU."""
    torch.set_num_threads(arithmetic.threads)
    if arithmetic.deterministic:
        # Read when CUDA is first used. Without it cuBLAS may split a sum differently every time, and torch refuses it.
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    # What torch.use_deterministic_algorithms sets, without the second in which that imports torch's compiler.
    torch.set_deterministic_debug_mode("error" if arithmetic.deterministic else "default")
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # it writes tensors twice
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
