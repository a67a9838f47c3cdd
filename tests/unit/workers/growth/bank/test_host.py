"""What a host does faster while it is measured, against the plain layer."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from workers.growth.bank.host import halved


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize(("channels", "height", "width"), [(1, 2, 2), (8, 8, 8), (5, 4, 6), (12, 7, 8), (3, 2, 5)])
def test_a_pool_without_indices_is_the_pool(
    channels: int, height: int, width: int, layout: torch.memory_format
) -> None:
    """Ties and values that are not finite included."""
    y = torch.randn(4, channels, height, width, generator=torch.Generator().manual_seed(0)).round(decimals=1)
    y[0, 0, 0, 0], y[1, 0, 1, 0], y[2, 0, 0, 1] = float("nan"), float("inf"), -float("inf")
    y = y.contiguous(memory_format=layout)
    got, expected = halved(y), F.max_pool2d(y, 2)
    assert got.shape == expected.shape
    assert torch.equal(got.nan_to_num(nan=7e7), expected.nan_to_num(nan=7e7))
