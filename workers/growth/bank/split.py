"""One split of a task on one device."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from workers.datasets.task import Split


@dataclass(frozen=True)
class DeviceSplit:
    """x [N, C, H, W] channels last, y [N]."""

    x: Tensor
    y: Tensor
    _images: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(split: Split, device: torch.device, dtype: torch.dtype) -> DeviceSplit:
        """Upload once."""
        x = torch.from_numpy(np.ascontiguousarray(split.x)).to(device, dtype)
        return DeviceSplit(x.contiguous(memory_format=torch.channels_last), torch.from_numpy(split.y).to(device))

    def cut(self, start: int, samples: int) -> DeviceSplit:
        """Return a part of it, without a copy."""
        return DeviceSplit(self.x[start : start + samples], self.y[start : start + samples])

    def images(self, dtype: torch.dtype) -> Tensor:
        """x as [N, H, W, C] in another precision, converted once; in its own no copy."""
        if dtype not in self._images:
            self._images[dtype] = self.x.to(dtype).permute(0, 2, 3, 1).contiguous()
        return self._images[dtype]
