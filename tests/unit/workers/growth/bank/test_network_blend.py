"""What joins the host, and which gradient goes where: the table of DESIGN section 4.4, pinned."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workers.growth.bank.network import Blend, bound, gate_params, seed_delta, seed_input
from workers.growth.bank.stack import Stack, births
from workers.layers.blueprint import Blueprint, ParamSpec
from workers.vocabulary import Algorithm, Stage

SCALE = Blueprint("scale", lambda channels: (ParamSpec("w", (channels,), center=1.5),), lambda x, p: x * p["w"])
BLENDED = (Stage.BLENDING, Stage.HOLDING)


def features() -> torch.Tensor:
    values = np.random.default_rng(0).uniform(0.5, 1.5, (3, 2, 2, 1, 4))
    return torch.from_numpy(values).requires_grad_()


def joined(h: torch.Tensor, stage: Stage, alpha: float, algorithm: Algorithm, blueprint: Blueprint = SCALE):
    stack = Stack((*blueprint.params(4), *gate_params(4)), 1, h.device, h.dtype)
    births([(stack, 0, np.random.default_rng(1).random(stack.width))])
    p = stack.borrow(torch.tensor([0]), None).params()
    blend = Blend.of(np.array([stage]), np.array([alpha]), np.array([algorithm]), h)
    x = seed_input(h, blend)
    return h + seed_delta(h, x, blueprint.delta(x, p), p, blend), p


def jacobian_is_identity(h: torch.Tensor, y: torch.Tensor) -> bool:
    direction = torch.from_numpy(np.random.default_rng(2).normal(size=tuple(y.shape)))
    (gradient,) = torch.autograd.grad(y, h, direction, retain_graph=True)
    return torch.allclose(gradient, direction, atol=1e-12)


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_an_incubating_seed_changes_nothing_but_is_taught(algorithm: Algorithm) -> None:
    h = features()
    y, p = joined(h, Stage.TRAINING, 0.0, algorithm)
    assert torch.equal(y, h)  # to the bit
    assert jacobian_is_identity(h, y)
    assert torch.autograd.grad(y.square().sum(), p["w"])[0].abs().sum() > 0


@pytest.mark.parametrize("stage", BLENDED)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("algorithm", [Algorithm.ADD, Algorithm.GATE])
def test_the_host_keeps_its_whole_gradient_at_any_alpha(stage: Stage, alpha: float, algorithm: Algorithm) -> None:
    h = features()
    y, _ = joined(h, stage, alpha, algorithm)
    assert jacobian_is_identity(h, y)
    assert not torch.allclose(y, h)


@pytest.mark.parametrize("stage", BLENDED)
def test_multiply_scales_the_host_gradient_by_its_factor(stage: Stage) -> None:
    h = features()
    y, p = joined(h, stage, 0.5, Algorithm.MULTIPLY)
    factor = 1.0 + 0.5 * torch.tanh(h.detach() * (p["w"].detach() - 1.0))
    assert torch.allclose(y, h * factor)
    (gradient,) = torch.autograd.grad(y.sum(), h)
    assert torch.allclose(gradient, factor)
    assert factor.min() >= 0.5
    assert factor.max() <= 1.5


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_a_fossil_has_the_same_forward_and_is_part_of_the_host(algorithm: Algorithm) -> None:
    h = features()
    held, _ = joined(h, Stage.HOLDING, 1.0, algorithm)
    fossil, p = joined(h, Stage.FOSSILIZED, 1.0, algorithm)
    assert torch.equal(held, fossil)
    if algorithm == Algorithm.ADD:  # delta 0.5 h is within the bound: y = 1.5 h
        assert torch.allclose(torch.autograd.grad(fossil.sum(), h)[0], p["w"].detach().expand_as(h))
    else:
        assert not torch.allclose(*(torch.autograd.grad(y.sum(), h)[0] for y in (held, fossil)))


def test_seed_gradient_is_scaled_by_alpha_once_blending() -> None:
    h = features()
    full, p = joined(h, Stage.HOLDING, 1.0, Algorithm.ADD)
    half, q = joined(h, Stage.BLENDING, 0.5, Algorithm.ADD)
    whole = torch.autograd.grad(full.sum(), p["w"])[0]
    assert torch.allclose(torch.autograd.grad(half.sum(), q["w"])[0], 0.5 * whole)


def test_the_bound_keeps_delta_below_the_host_per_sample() -> None:
    h = features().detach()
    small, large = (delta * bound(delta, h) for delta in (0.1 * h, 50.0 * h))
    assert torch.allclose(small, 0.1 * h)
    assert torch.allclose(large, h)


def test_the_bound_of_an_exact_identity_has_finite_gradients() -> None:
    h = features().detach()
    delta = torch.zeros_like(h).requires_grad_()
    (gradient,) = torch.autograd.grad((delta * bound(delta, h)).sum(), delta)
    assert torch.equal(gradient, torch.ones_like(h))


def test_the_bound_differentiates_through_delta_not_through_the_host() -> None:
    h = features()
    delta = (3.0 * h.detach()).requires_grad_()
    out = delta * bound(delta, h)
    assert torch.autograd.grad(out.sum(), h, allow_unused=True, retain_graph=True)[0] is None
    # Beyond the bound the size of delta no longer matters: moving along delta itself changes nothing.
    (gradient,) = torch.autograd.grad(out, delta, torch.ones_like(out))
    assert torch.allclose((gradient * delta).sum((1, 2, 4)), torch.zeros(3, 1, dtype=h.dtype), atol=1e-9)


@pytest.mark.parametrize("times", [1.0, 1e25, 1e40], ids=["", "its square overflows", "it overflows"])
@pytest.mark.parametrize("size", [1.0, 1e25], ids=["", "the features' square overflows"])
def test_a_delta_too_large_to_be_added_may_still_multiply(size: float, times: float) -> None:
    """In float32: tanh bounds it. Beside it one that is added, which may be anything."""
    h = size * torch.randn(2, 3, 3, 2, 8, generator=torch.Generator().manual_seed(0))
    h.requires_grad_()
    w = torch.ones(2, 8, requires_grad=True)
    algorithms = np.array([Algorithm.MULTIPLY, Algorithm.ADD])
    blend = Blend.of(np.full(2, Stage.BLENDING), np.array([0.5, 0.5]), algorithms, h)
    x = seed_input(h, blend)
    y = h + seed_delta(h, x, x * w * times, {}, blend)
    dh, dw = torch.autograd.grad(y[:, :, :, 0].sum(), [h, w])
    tanh = torch.tanh(h[:, :, :, 0] * times)
    torch.testing.assert_close([y[:, :, :, 0], dh[:, :, :, 0]], [h[:, :, :, 0] * (1.0 + 0.5 * tanh), 1.0 + 0.5 * tanh])
    assert dw[0].isfinite().all() or times > 1e38
