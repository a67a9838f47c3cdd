"""The GPUs that this process sees, by the names that CUDA_VISIBLE_DEVICES has for them."""

from __future__ import annotations

from typing import Any

import torch

from esper_ab.contracts.gpu_names import gpu_names, is_beyond_one_instance


def seen_gpus(visible: str | None) -> list[tuple[str, Any]]:
    """Return name and torch's properties of each GPU of NVIDIA, in order. `visible`: CUDA_VISIBLE_DEVICES, if set.

    No GPU counts where `visible` names an instance of MIG beside others.
    """
    count = torch.cuda.device_count() if torch.version.cuda and not is_beyond_one_instance(visible) else 0
    found = [torch.cuda.get_device_properties(index) for index in range(count)]
    return list(zip(gpu_names([str(one.uuid) for one in found], visible), found, strict=True))
