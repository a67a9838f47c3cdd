"""Every fast path against the simple one on the same inputs, gradients included."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.tensor_world import env_path

from workers.blueprints._blueprint import conv
from workers.growth.blend import Blend, gate, gate_params, seed_delta, seed_input
from workers.growth.fused_blend import fused_delta
from workers.growth.host import BatchStatistics, block_forward, fused_block_forward
from workers.growth.stack import Stack
from workers.tasks.digits import TASK
from workers.vocabulary import Algorithm, Stage


def random(*shape: int, rng_seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(rng_seed), dtype=torch.float64)


def close(mine: torch.Tensor | None, theirs: torch.Tensor | None, tolerance: float = 1e-10) -> bool:
    zero = torch.zeros(())
    a, b = (zero if t is None else t for t in (mine, theirs))
    return bool((a - b).abs().max() <= tolerance)


@pytest.mark.parametrize("networks", [1, 3, 5])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("pools", [0, 1])
@pytest.mark.parametrize("side", [1, 2, 7, 16])
def test_a_block_in_one_step_is_conv_norm_pool_and_relu(networks: int, kernel: int, pools: int, side: int) -> None:
    """Gains of both signs, odd sides, few and many channels; a second step on the moments of the first."""
    if side == 1 and pools:
        pytest.skip("nothing to pool")
    spec = dataclasses.replace(TASK.host, in_channels=3, blocks=1, kernel=kernel, pools=pools)
    p = {
        "0.conv": random(networks, 8, 3, kernel, kernel, rng_seed=1),
        "0.bn.gain": random(networks, 8, rng_seed=2),
        "0.bn.bias": random(networks, 8, rng_seed=3),
    }
    moments = [BatchStatistics(random(networks, 8), random(networks, 8).square()) for _ in range(2)]
    for step in range(2):
        x = random(6, side, side, networks, 3, rng_seed=4 + step).requires_grad_()
        leaves = [x, *(value.requires_grad_() for value in p.values())]
        plain = block_forward(x, p, spec, 0, moments[0], training=True)
        fused = fused_block_forward(x, p, spec, 0, moments[1])
        g = random(*plain.shape, rng_seed=9)
        assert plain.shape == fused.shape
        assert close(fused, plain)
        pairs = zip(torch.autograd.grad(fused, leaves, g), torch.autograd.grad(plain, leaves, g), strict=True)
        assert all(close(mine, theirs) for mine, theirs in pairs)
    assert close(moments[0].mean, moments[1].mean)
    assert close(moments[0].var, moments[1].var)


STAGES = [Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]


@pytest.mark.parametrize("algorithms", [[Algorithm.ADD] * 4, [2, 1, 0, 2], [1, 0, 1, 1], [0, 2, 2, 0]])
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
def test_seeds_join_in_one_step_as_the_formulas_say(algorithms: list[int], size: float) -> None:
    """Every stage and algorithm, deltas below and beyond the bound, and one that is exactly nothing."""
    h = random(5, 3, 3, 4, 8).requires_grad_()
    weight = (size * random(4, 8, rng_seed=1)).requires_grad_()
    blend = Blend.of(np.array(STAGES), np.array([0.0, 0.4, 1.0, 1.0]), np.array(algorithms), h)
    stack = Stack(gate_params(8), 4, h.device, h.dtype)
    stack.birth(slice(None), (env_path(0) / "gates").generator().random((4, stack.width)))
    gates = stack.borrow(torch.arange(4), None).leaves

    def joined(fused: bool) -> tuple[torch.Tensor, tuple[torch.Tensor | None, ...]]:
        x = seed_input(h, blend)
        s = x + torch.cat([torch.zeros_like(x[:1]), x[1:] * weight])
        opening = gate(x, gates)[:, 0, 0, :, 0] if blend.gated is not None else None
        delta = fused_delta(h, s, opening, blend) if fused else seed_delta(h, x, s, gates, blend)
        y = h + delta
        leaves = [h, weight, *gates.values()]
        return y, torch.autograd.grad(y, leaves, random(*y.shape, rng_seed=5), allow_unused=True)

    (mine, my_grads), (theirs, their_grads) = joined(True), joined(False)
    assert close(mine, theirs)
    assert all(close(a, b, 1e-9) for a, b in zip(my_grads, their_grads, strict=True))
    assert my_grads[1] is not None
    assert bool(my_grads[1].abs().max() > 0)


@pytest.mark.parametrize("networks", [1, 4])
@pytest.mark.parametrize(("into", "out"), [(8, 16), (16, 8)])
def test_pointwise_convolution_and_its_gradients(networks: int, into: int, out: int) -> None:
    x, w = random(5, 3, 3, networks, into).requires_grad_(), random(networks, out, into, 1, 1).requires_grad_()
    y = conv(x, w)
    alone = [F.conv2d(x[..., n, :].permute(0, 3, 1, 2), w[n]).permute(0, 2, 3, 1) for n in range(networks)]
    expected = torch.stack(alone, 3)
    g = random(*y.shape, rng_seed=2)
    assert close(y, expected)
    pairs = zip(torch.autograd.grad(y, [x, w], g), torch.autograd.grad(expected, [x, w], g), strict=True)
    assert all(close(mine, theirs) for mine, theirs in pairs)


def test_around_a_single_pixel_a_wide_kernel_is_its_centre() -> None:
    x, w = random(5, 1, 1, 3, 4), random(3, 6, 4, 3, 3).requires_grad_()
    y = conv(x, w)
    expected = torch.stack([F.conv2d(x[..., n, :].permute(0, 3, 1, 2), w[n], padding=1)[..., 0, 0] for n in range(3)])
    assert close(y[:, 0, 0], expected.transpose(0, 1))
    (mine,) = torch.autograd.grad(y.square().sum(), w, retain_graph=True)
    (theirs,) = torch.autograd.grad(expected.square().sum(), w)
    assert close(mine, theirs)


def test_a_gate_that_nobody_looks_through_is_not_trained() -> None:
    specs = gate_params(8)
    stack = Stack(specs, 2, torch.device("cpu"), torch.float64)
    stack.birth(slice(None), (env_path(1) / "gates").generator().random((2, stack.width)))
    before = stack.values.clone()
    idle = sum(spec.size for spec in specs[2:])
    loan = stack.borrow(torch.arange(2), None, idle)
    assert list(loan.leaves) == [spec.name for spec in specs[:2]]
    loan.flat += 1.0
    stack.give_back(torch.arange(2), loan)
    used = stack.width - idle
    assert torch.equal(stack.values[:, :used], before[:, :used] + 1.0)
    assert torch.equal(stack.values[:, used:], before[:, used:])
