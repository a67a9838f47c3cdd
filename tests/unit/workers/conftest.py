"""One thread per test process, as a worker has: tiny tensors gain nothing from more, and a busy machine loses much."""

import os

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _as_it_was():
    """What a command pins for its process (process/arithmetic.py) is undone: the next test has it from nobody."""
    mode, fill = torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory
    cublas = os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    yield
    torch.set_num_threads(1)
    torch.set_deterministic_debug_mode(mode)
    torch.utils.deterministic.fill_uninitialized_memory = fill
    if cublas is None:
        os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    else:
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = cublas
