"""Every fast path against the simple one on the same inputs, gradients included."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from support.tensor_world import env_path

from esper_ab.contracts import catalog
from workers.growth.bank import fused
from workers.growth.bank.blend import Blend, gate_params, seed_delta, seed_input
from workers.growth.bank.chains import Member, ends_in
from workers.growth.bank.host import BatchStatistics, MeasuredLevel, level_forward
from workers.growth.bank.slot_step import GATE_NAMES, SlotStep
from workers.growth.bank.stack import Stack
from workers.growth.bank.training_step import side_by_side
from workers.layers import device as _device
from workers.layers.blueprint import (
    Blueprint,
    Conv,
    Norm,
    ParamSpec,
    Relu,
    conv,
    conv_params,
    norm_params,
    residual,
)
from workers.layers.convolution import as_image, convolve, convolve_backward
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
def test_a_level_in_one_step_is_conv_norm_pool_and_relu(networks: int, kernel: int, pools: int, side: int) -> None:
    """Gains of both signs, odd sides, few and many channels; a second step on the moments of the first."""
    if side == 1 and pools:
        pytest.skip("nothing to pool")
    spec = dataclasses.replace(TASK.host, in_channels=3, levels=1, kernel=kernel, pools=pools)
    p = {
        "0.conv": random(networks, 8, 3, kernel, kernel, rng_seed=1),
        "0.bn.gain": random(networks, 8, rng_seed=2),
        "0.bn.bias": random(networks, 8, rng_seed=3),
    }
    moments = [BatchStatistics(random(networks, 8), random(networks, 8).square()) for _ in range(2)]
    for step in range(2):
        x = random(6, side, side, networks, 3, rng_seed=4 + step).requires_grad_()
        leaves = [x, *(value.requires_grad_() for value in p.values())]
        plain = level_forward(x, p, spec, 0, moments[0], training=True)
        own = fused.BlockParams(*(leaf.detach() for leaf in leaves[1:]), moments[1].mean, moments[1].var, pools > 0)
        z, kept = fused.level_forward(as_image(x.detach()), own)
        g = random(*plain.shape, rng_seed=9)
        assert plain.shape == z.shape
        assert close(z, plain)
        dx, grads = fused.level_backward(g, kept, own.gain, into_image=True)
        pairs = zip([dx, *grads], torch.autograd.grad(plain, leaves, g), strict=True)
        assert all(close(mine, theirs) for mine, theirs in pairs)
        assert fused.level_backward(g, kept, own.gain, into_image=False)[0] is None
    assert close(moments[0].mean, moments[1].mean)
    assert close(moments[0].var, moments[1].var)


@pytest.mark.parametrize("into_image", [False, True])
@pytest.mark.parametrize("of_data", [False, True])
@pytest.mark.parametrize(("into", "out", "k"), [(3, 8, 3), (8, 16, 3), (16, 8, 3), (8, 8, 3), (1, 8, 1), (3, 8, 1)])
@pytest.mark.parametrize("networks", [1, 2, 3, 4, 6])
def test_convolution_and_its_gradients(
    networks: int, into: int, out: int, k: int, of_data: bool, into_image: bool
) -> None:
    """Kernels of many and few channels; gradients of image and kernel, in both precisions."""
    for precision, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-3)):
        x = as_image(random(5, 7, 6, networks, into).to(precision)).requires_grad_()
        kernel = random(networks * out, into, k, k, rng_seed=1).to(precision).requires_grad_()
        expected = F.conv2d(x, kernel, padding=k // 2, groups=networks)
        g = random(5, 7, 6, networks * out, rng_seed=2).to(precision).permute(0, 3, 1, 2)
        y = convolve(x.detach(), kernel.detach(), networks, of_data)
        assert y.is_contiguous(memory_format=torch.channels_last)
        assert close(y, expected, tolerance)
        plain = torch.autograd.grad(expected, [x, kernel], g)
        dx, dkernel = convolve_backward(g, x.detach(), kernel.detach(), networks, into_image)
        assert close(dkernel, plain[1], tolerance)
        assert dx is None if not into_image else close(dx, plain[0], tolerance)


def finite(networks: Iterable[torch.Tensor]) -> list[bool]:
    return [bool(torch.isfinite(part).all()) for part in networks]


def test_a_network_that_overflowed_spoils_no_other() -> None:
    """Kernels over data, features over finite kernels, and gradients: whatever is joined, what is not finite stays."""
    x, kernel = random(4, 8, 8, 4, 3), random(4, 8, 3, 3, 3, rng_seed=1)
    kernel[1] = torch.inf
    y = convolve(as_image(x), kernel.flatten(0, 1), 4, of_data=True)
    assert finite(y.split(8, 1)) == [True, False, True, True]
    y = convolve(as_image(x[..., :1]), kernel[:, :, :1, :1, :1].flatten(0, 1), 4, of_data=True)
    assert finite(y.split(8, 1)) == [True, False, True, True]
    h, g = random(4, 8, 8, 4, 8), random(4, 8, 8, 4, 8, rng_seed=2)
    h[:, :, :, 1] = torch.nan
    g[:, :, :, 2] = torch.inf
    fine = random(32, 8, 3, 3, rng_seed=3)
    y = convolve(as_image(h), fine, 4)
    assert finite(y.split(8, 1)) == [True, False, True, True]
    dx, dkernel = convolve_backward(as_image(g), as_image(h), fine, 4, into_image=True)
    assert dx is not None
    assert finite(dx.split(8, 1)) == [True, True, False, True]
    assert finite(dkernel.split(8)) == [True, False, False, True]


@pytest.mark.parametrize("side", [8, 32])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("hosts", [1, 4])
def test_images_of_every_host_side_by_side(hosts: int, channels: int, side: int) -> None:
    """Small images, and ones that are fetched host by host."""
    images = random(9, side, side, channels)
    batch = torch.stack([torch.randperm(9, generator=torch.Generator().manual_seed(host)) for host in range(hosts)])
    x = side_by_side(images, batch)
    assert x.is_contiguous(memory_format=torch.channels_last)
    for host in range(hosts):
        own = x[:, host * channels : (host + 1) * channels]
        assert torch.equal(own, images[batch[host]].permute(0, 3, 1, 2))


STAGES = [Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("pools", [0, 1])
@pytest.mark.parametrize("shared", [False, True])
def test_a_measured_level_is_the_level_in_evaluation_mode(kernel: int, pools: int, shared: bool) -> None:
    """Images of each host, or the same for all."""
    spec = dataclasses.replace(TASK.host, in_channels=3, levels=1, kernel=kernel, pools=pools)
    gain, bias = random(5, 8, rng_seed=2), random(5, 8, rng_seed=3)
    p = {"0.conv": random(5, 8, 3, kernel, kernel, rng_seed=1), "0.bn.gain": gain, "0.bn.bias": bias}
    moments = BatchStatistics(random(5, 8), random(5, 8).square() + 0.1)
    x = random(6, 4, 4, 1 if shared else 5, 3, rng_seed=4)
    plain = level_forward(x.expand(-1, -1, -1, 5, -1), p, spec, 0, moments, training=False)
    measured = MeasuredLevel.of(p, spec, 0, moments).forward(as_image(x), 1 if shared else 5)
    assert close(measured, plain)


OWN = {  # no chain of layers; chains with a layer before the first convolution, or without one
    "scaled": Blueprint(
        "scaled", lambda c: (ParamSpec("weight", (c,), bound=0.4),), lambda x, p: x + torch.sin(x) * p["weight"]
    ),
    "relu_first": residual("relu_first", lambda c: norm_params(c), Relu(), Norm("norm")),
    "norm_first": residual(
        "norm_first",
        lambda c: (*norm_params(c, "first"), conv_params("conv", c, c, 3), *norm_params(c)),
        Norm("first"),
        Conv("conv"),
        Norm("norm"),
    ),
}
BLUEPRINTS: dict[str, Blueprint] = OWN | {
    name: catalog.entry("workers.blueprints", name, "BLUEPRINT") for name in catalog.names("workers.blueprints")
}


def member(name: str, count: int, like: torch.Tensor, fossils: bool) -> Member:
    """So many seeds of a blueprint, no two with the same parameters."""
    blueprint = BLUEPRINTS[name]
    stack = Stack((*blueprint.params(8), *gate_params(8)), count, like.device, like.dtype)
    stack.birth(slice(None), (env_path(0) / name).generator().random((count, stack.width)))
    params = {key: value + 0.3 for key, value in stack.borrow(torch.arange(count), None).leaves.items()}
    return Member(blueprint, {key: value.detach().requires_grad_() for key, value in params.items()}, count, fossils)


def simply(slot: list[Member], h: torch.Tensor, blend: Blend) -> torch.Tensor:
    """The features with the seeds of all rows, as blend.py says it."""
    x = seed_input(h, blend)
    parts = torch.split(x, [m.count for m in slot], 3)
    s = torch.cat([m.blueprint.forward(part, m.params) for m, part in zip(slot, parts, strict=True)], 3)
    gates = {name: torch.cat([m.params[name] for m in slot]) for name in GATE_NAMES}
    return h + seed_delta(h, x, s, gates, blend)


def assert_joined(slot: list[Member], blend: Blend, h: torch.Tensor, rows: torch.Tensor | slice | None) -> None:
    """Value and gradients of a slot in one step are those of the formulas, at its rows of h and at no others."""
    at = torch.arange(h.shape[3])[slice(None) if rows is None else rows]
    mine = h[:, :, :, at].clone().requires_grad_()
    leaves = [value for m in slot for value in m.params.values()]
    plain = simply(slot, mine, blend)
    g = torch.zeros_like(h)
    g[:, :, :, at] = random(*plain.shape, rng_seed=5)
    expected = torch.autograd.grad(plain, [mine, *leaves], g[:, :, :, at], allow_unused=True)
    step = SlotStep(slot, rows, blend)
    with torch.no_grad():
        y, dh = step.forward(h.clone()), step.backward(g)
    assert close(y[:, :, :, at], plain)
    found = [dh[:, :, :, at], *(m.grads.get(key) for m in slot for key in m.params)]
    assert all(close(a, b, 1e-8) for a, b in zip(found, expected, strict=True))
    others = [row for row in range(h.shape[3]) if row not in at]
    assert torch.equal(y[:, :, :, others], h[:, :, :, others])
    assert not dh[:, :, :, others].any()


@pytest.mark.parametrize("algorithms", [[Algorithm.ADD] * 4, [2, 1, 0, 2], [1, 0, 1, 1], [0, 2, 2, 0]])
@pytest.mark.parametrize("size", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("side", [1, 2, 4, 32])
@pytest.mark.parametrize(
    "names",
    [
        ["conv_light", "conv_small", "bottleneck", "attention"],
        ["depthwise", "conv_heavy", "norm", "scaled"],
        ["depthwise", "conv_light", "conv_heavy", "conv_small"],
        ["bottleneck", "relu_first", "norm", "attention"],
        ["depthwise", "conv_heavy", "bottleneck", "norm"],
    ],
)
def test_seeds_join_as_the_formulas_say(names: list[str], side: int, size: float, algorithms: list[int]) -> None:
    """Every blueprint, stage and algorithm, with deltas of several sizes; over all rows, some neighbours, some rows.

    Convolutions around one pixel, small ones that are one, large ones each by itself.
    """
    h = size * random(5, side, side, 6, 8)
    for rows in (None, slice(1, 5), torch.tensor([5, 0, 3, 2])):
        features = h[:, :, :, :4] if rows is None else h
        blend = Blend.of(np.array(STAGES), np.array([0.0, 0.4, 1.0, 1.0]), np.array(algorithms), h)
        slot = [member(name, 1, h, fossils=True) for name in names]
        assert_joined(slot, blend, features.contiguous(), rows)
        assert all(any(grad.any() for grad in m.grads.values()) for m in slot)


SEEDS = st.tuples(st.sampled_from(STAGES), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from(Algorithm))


@settings(max_examples=40)
@given(
    held=st.dictionaries(st.sampled_from(sorted(BLUEPRINTS)), st.lists(SEEDS, min_size=1, max_size=3), min_size=1),
    side=st.sampled_from([1, 2, 4]),
    order=st.sampled_from(["all rows", "neighbours", "some rows"]),
    on_cpu=st.booleans(),
)
def test_any_seeds_join_as_the_formulas_say(
    held: dict[str, list[tuple[Stage, float, Algorithm]]], side: int, order: str, on_cpu: bool
) -> None:
    """Several of a blueprint, and fossils beside seeds that look from behind a stop, in a blueprint or only in others.

    By a CPU's ways and by a GPU's.
    """
    names = sorted(held, key=lambda name: ends_in(BLUEPRINTS[name]))
    seeds = [seed for name in names for seed in held[name]]
    n = len(seeds)
    rows = {"all rows": None, "neighbours": slice(1, n + 1), "some rows": torch.arange(n + 2).roll(3)[:n]}[order]
    h = random(3, side, side, n if rows is None else n + 2, 8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_device, "is_cpu", lambda _device: on_cpu)
        blend = Blend.of(*(np.array(values) for values in zip(*seeds, strict=True)), h)
        slot = [
            member(name, len(held[name]), h, fossils=any(stage == Stage.FOSSILIZED for stage, *_ in held[name]))
            for name in names
        ]
        assert_joined(slot, blend, h, rows)


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
