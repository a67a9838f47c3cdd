"""Group norm of networks side by side against torch's own, network by network."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from workers.layers.norm import group_norm, norm_groups


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize(("channels", "groups"), [(8, 8), (16, 1), (32, 2), (64, 4), (128, 8), (12, 4)])
def test_group_count(channels: int, groups: int) -> None:
    assert norm_groups(channels) == groups


@pytest.mark.parametrize("channels", [8, 32])
@pytest.mark.parametrize("side", [1, 3])
def test_group_norm_and_its_gradients(channels: int, side: int) -> None:
    x, gain, bias = random(5, side, side, 3, channels), random(3, channels), random(3, channels)
    mine = [t.clone().requires_grad_() for t in (x, gain, bias)]
    plain = [t.clone().requires_grad_() for t in (x, gain, bias)]
    y = group_norm(*mine)
    image = plain[0].permute(0, 3, 4, 1, 2)  # [B, N, C, H, W]
    groups = norm_groups(channels)
    parts = [F.group_norm(image[:, n], groups, plain[1][n], plain[2][n]) for n in range(3)] if side > 1 else [
        F.group_norm(image[:, n].expand(-1, -1, 2, 1), groups, plain[1][n], plain[2][n])[:, :, :1] for n in range(3)
    ]  # torch refuses to normalise single numbers  # fmt: skip
    expected = torch.stack(parts, 1).permute(0, 3, 4, 1, 2)
    assert torch.allclose(y, expected, atol=1e-12)
    g = random(*y.shape)
    gradients = zip(torch.autograd.grad(y, mine, g), torch.autograd.grad(expected, plain, g), strict=True)
    assert all(torch.allclose(a, b, atol=1e-8) for a, b in gradients)


def test_group_norm_of_detached_features_does_not_crash_the_process() -> None:
    """torch 2.13's own backward does: the input's gradient is not needed there. In a process of its own."""
    program = (
        "import torch; from workers.layers.norm import group_norm\n"
        "gain, bias = torch.ones(3, 8, requires_grad=True), torch.zeros(3, 8, requires_grad=True)\n"
        "y = group_norm(torch.randn(64, 4, 4, 3, 8), gain, bias)\n"
        "torch.autograd.grad(y.square().sum(), [gain, bias])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
