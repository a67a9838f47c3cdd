"""Which kind of device computes: every choice between ways to compute that depends on it asks here.

So a test can take a GPU's ways on a CPU, where their numbers can be compared.
"""

from __future__ import annotations

import torch


def is_cpu(device: torch.device) -> bool:
    """Whether kernels take any layout, loops run along the memory, and a call costs little."""
    return device.type == "cpu"
