"""The contract of every file in workers/blueprints: the folder is the list of cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from esper_ab.contracts import catalog
from workers.growth.bank.blend import Blend, gate_params, seed_delta, seed_input
from workers.growth.bank.stack import SGD, Stack
from workers.layers.blueprint import Blueprint
from workers.vocabulary import Algorithm, Stage

NAMES = catalog.names("workers.blueprints")
SHAPES = [(4, 4, 8), (2, 2, 16), (1, 1, 32), (4, 4, 4)]  # H, W, C of the slots of the tasks' hosts
# growth-facts.md section 4: parameters as a function of the channels.
SIZES = {
    "norm": lambda c: 2 * c + 1,
    "attention": lambda c: 2 * c * max(1, c // 4) + c,
    "depthwise": lambda c: c * c + 11 * c,
    "bottleneck": lambda c: 2 * c * max(8, c // 4) + 9 * max(8, c // 4) ** 2 + 2 * c,
    "conv_small": lambda c: c * c + 2 * c,
    "conv_light": lambda c: 9 * c * c + 2 * c,
    "conv_heavy": lambda c: 18 * c * c + 4 * c,
}
IDENTITY_AT_BIRTH = {"norm", "bottleneck"}


def load(name: str) -> Blueprint:
    return catalog.entry("workers.blueprints", name, "BLUEPRINT")


def grown(name: str, shape: tuple[int, int, int], rows: int = 3) -> tuple[Blueprint, Stack, torch.Tensor]:
    """A blueprint, seeds of it, and positive features like those after a ReLU, [B, H, W, rows, C]."""
    blueprint, (h, w, c) = load(name), shape
    rng = np.random.default_rng(7)
    stack = Stack((*blueprint.params(c), *gate_params(c)), rows, torch.device("cpu"), torch.float64)
    stack.birth(slice(None), rng.random((rows, stack.width)))
    return blueprint, stack, torch.from_numpy(np.maximum(rng.normal(0.5, 1.0, (16, h, w, rows, c)), 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_file_and_name_agree(name: str) -> None:
    assert load(name).name == name


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", [name for name in NAMES if load(name).by_hand])
def test_a_backward_pass_of_its_own_is_that_of_autograd(
    name: str, shape: tuple[int, int, int], dtype: torch.dtype, tolerance: float
) -> None:
    """From features that lie apart in memory; the input's gradient only where it is asked for."""
    blueprint, stack, x = grown(name, shape)
    x = torch.cat([x, x], 3).to(dtype)[:, :, :, 1:4]
    gates = {spec.name for spec in gate_params(shape[2])}
    p = {key: (value + 0.3).to(dtype) for key, value in stack.read(torch.arange(3)).items() if key not in gates}
    leaves = [leaf.requires_grad_() for leaf in (x.clone(), *p.values())]
    plain = blueprint.forward(leaves[0], p) - leaves[0]
    g = torch.randn(plain.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    expected = torch.autograd.grad(plain, leaves, g)
    assert blueprint.by_hand is not None
    with torch.no_grad():
        d, back = blueprint.by_hand(x, p)
        grads: dict[str, torch.Tensor] = {}
        found = [back(g.clone(), grads, True), *(grads[key] for key in p)]
        assert back(g, {}, False) is None
    assert torch.allclose(d, plain, atol=tolerance)
    for mine, theirs in zip(found, expected, strict=True):
        assert mine is not None
        assert torch.allclose(mine, theirs, atol=tolerance * float(theirs.abs().max() + 1.0))


@pytest.mark.parametrize("name", sorted(set(NAMES) & set(SIZES)))
@pytest.mark.parametrize("channels", [8, 16, 32, 64, 128])
def test_parameter_count(name: str, channels: int) -> None:
    assert sum(spec.size for spec in load(name).params(channels)) == SIZES[name](channels)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES)
def test_keeps_the_shape_and_never_mixes_networks(name: str, shape: tuple[int, int, int]) -> None:
    blueprint, stack, x = grown(name, shape)
    y = blueprint.forward(x, stack.read(torch.tensor([0, 1, 2])))
    assert y.shape == x.shape
    for row in range(3):
        alone = blueprint.forward(x[..., [row], :], stack.read(torch.tensor([row])))
        assert torch.allclose(y[..., [row], :], alone, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_identity_at_birth_is_what_its_file_says(name: str) -> None:
    blueprint, stack, x = grown(name, (4, 4, 8))
    y = blueprint.forward(x, stack.read(torch.tensor([0, 1, 2])))
    assert torch.equal(y, x) == (name in IDENTITY_AT_BIRTH)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("algorithm", list(Algorithm))
@pytest.mark.parametrize("stage", [Stage.TRAINING, Stage.BLENDING])
def test_alive_under_every_style(name: str, shape: tuple[int, int, int], algorithm: Algorithm, stage: Stage) -> None:
    """At birth at least one, after one optimiser step every parameter of the module has a non-zero gradient."""
    blueprint, stack, h = grown(name, shape)
    n = 3
    blend = Blend.of(np.full(n, stage), np.full(n, 0.4), np.full(n, algorithm), h)
    target = torch.from_numpy(np.random.default_rng(8).normal(size=tuple(h.shape)))
    borrowed = stack.borrow(torch.arange(n), None)

    def gradients() -> dict[str, torch.Tensor]:
        x = seed_input(h, blend)
        y = h + seed_delta(h, x, blueprint.forward(x, borrowed.leaves), borrowed.leaves, blend)
        leaves = list(borrowed.leaves.values())
        grads = torch.autograd.grad((y * target).sum(), leaves, allow_unused=True)
        found = dict(zip(borrowed.leaves, grads, strict=True))
        known = {key: value for key, value in found.items() if value is not None}
        borrowed.step(known, SGD(0.01, 0.9, 0.0, 1.0))
        return known

    def live(found: dict[str, torch.Tensor], key: str) -> bool:
        return key in found and all(bool(found[key][row].abs().max() > 1e-12) for row in range(n))

    names = [spec.name for spec in blueprint.params(shape[2])]
    born = gradients()
    assert any(live(born, key) for key in names)
    stepped = gradients()
    dead = [key for key in names if not live(stepped, key)]
    assert not dead
    if algorithm == Algorithm.GATE and stage == Stage.BLENDING:
        assert all(live(stepped, spec.name) for spec in gate_params(shape[2]))
