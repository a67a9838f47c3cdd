"""A level of hosts side by side against torch's plain layers, host by host."""

from __future__ import annotations

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from workers.growth.bank.host import BatchStatistics, level_forward
from workers.layers import device as _device
from workers.tasks.digits import TASK

HOSTS = 3


def random(*shape: int, rng_seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rng_seed), dtype=torch.float64)


def plain(
    x: torch.Tensor, own: list[torch.Tensor], mean: torch.Tensor, var: torch.Tensor, pools: int, training: bool
) -> torch.Tensor:
    """Of one host: images [B,I,H,W]."""
    weight, gain, bias = own
    y = F.batch_norm(F.conv2d(x, weight, padding=weight.shape[-1] // 2), mean, var, gain, bias, training)
    y = F.relu(y)
    return F.max_pool2d(y, 2) if pools else y


@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("side", "pools"), [(1, 0), (2, 0), (2, 1), (7, 0), (7, 1)])
def test_a_level_is_conv_norm_pool_and_relu(
    on_cpu: bool, training: bool, shared: bool, kernel: int, pools: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gains of both signs, odd sides; outputs, gradients and running moments; images of each host, or for all."""
    monkeypatch.setattr(_device, "is_cpu", lambda _device: on_cpu)
    spec = dataclasses.replace(TASK.host, in_channels=3, levels=1, kernel=kernel, pools=pools)
    names = ("0.conv", "0.bn.gain", "0.bn.bias")
    p = dict(zip(names, (random(HOSTS, 8, 3, kernel, kernel), random(HOSTS, 8), random(HOSTS, 8)), strict=True))
    leaves = [value.requires_grad_() for value in p.values()]
    moments, own = (BatchStatistics(random(HOSTS, 8), random(HOSTS, 8).square() + 0.1) for _ in range(2))
    x = random(6, side, side, 1 if shared else HOSTS, 3, rng_seed=4)
    y = level_forward(x, p, spec, 0, moments, training=training)
    images = x.expand(-1, -1, -1, HOSTS, -1).permute(3, 0, 4, 1, 2)
    expected = torch.stack(
        [
            plain(images[n], [leaf[n] for leaf in leaves], own.mean[n], own.var[n], pools, training)
            for n in range(HOSTS)
        ]
    ).permute(1, 3, 4, 0, 2)
    torch.testing.assert_close(y, expected, rtol=1e-10, atol=1e-10)
    g = random(*y.shape, rng_seed=9)
    found, theirs = (torch.autograd.grad(out, leaves, g) for out in (y, expected))
    torch.testing.assert_close(found, theirs, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close([moments.mean, moments.var], [own.mean, own.var])
