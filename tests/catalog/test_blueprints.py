"""The contract of every file in workers/kinds/growth/blueprints: the folder is the list of cases."""

import numpy as np
import pytest
import torch

from esper_ab.contracts import catalog
from workers.kinds.growth.bank.network import Blend, gate_params, seed_delta, seed_input
from workers.kinds.growth.bank.stack import SGD, Stack, births, by_name
from workers.kinds.growth.layers.blueprint import Blueprint
from workers.kinds.growth.vocabulary import Algorithm, Stage

NAMES = catalog.names("workers.kinds.growth.blueprints")
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
    return catalog.entry("workers.kinds.growth.blueprints", name, "BLUEPRINT")


def make_seed_modules(name: str, shape: tuple[int, int, int], rows: int = 3) -> tuple[Blueprint, Stack, torch.Tensor]:
    """Return a blueprint, its seed modules, and positive features as after a ReLU, [B, H, W, rows, C]."""
    blueprint = load(name)
    (h, w, c) = shape
    rng = np.random.default_rng(7)
    stack = Stack((*blueprint.params(c), *gate_params(c)), rows, torch.device("cpu"), torch.float64)
    births([(stack, slice(None), rng.random((rows, stack.width)))])
    return blueprint, stack, torch.from_numpy(np.maximum(rng.normal(0.5, 1.0, (16, h, w, rows, c)), 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_blueprint_is_named_like_its_file(name: str) -> None:
    assert load(name).name == name


@pytest.mark.parametrize("name", sorted(set(NAMES) & set(SIZES)))
@pytest.mark.parametrize("channels", [8, 16, 32, 64, 128])
def test_a_blueprint_has_the_documented_number_of_parameters(name: str, channels: int) -> None:
    assert sum(spec.size for spec in load(name).params(channels)) == SIZES[name](channels)


@pytest.mark.parametrize("name", NAMES)
def test_only_the_listed_blueprints_start_as_the_identity(name: str) -> None:
    blueprint, stack, x = make_seed_modules(name, (4, 4, 8))
    y = blueprint.forward(x, stack.read(torch.tensor([0, 1, 2])))
    assert torch.equal(y, x) == (name in IDENTITY_AT_BIRTH)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", SHAPES[:3])
@pytest.mark.parametrize("algorithm", list(Algorithm))
@pytest.mark.parametrize("stage", [Stage.TRAINING, Stage.BLENDING])
def test_every_parameter_gets_a_gradient_after_one_step(
    name: str, shape: tuple[int, int, int], algorithm: Algorithm, stage: Stage
) -> None:
    """At birth at least one parameter has a non-zero gradient, after one optimiser step all have."""
    blueprint, stack, h = make_seed_modules(name, shape)
    n = 3
    blend = Blend.of(np.full(n, stage), np.full(n, 0.4), np.full(n, algorithm), h)
    target = torch.from_numpy(np.random.default_rng(8).normal(size=tuple(h.shape)))
    loan = stack.borrow(torch.arange(n), None)

    def step_gradients() -> dict[str, torch.Tensor]:
        x = seed_input(h, blend)
        p = loan.params()
        y = h + seed_delta(h, x, blueprint.delta(x, p), p, blend)
        (grad,) = torch.autograd.grad((y * target).sum(), loan.flat)
        by_parameter = {key: value.clone() for key, value in by_name(stack.specs, grad).items()}
        loan.step(grad, SGD(0.01, 0.9, 0.0, 1.0))
        return by_parameter

    def has_gradient(gradients: dict[str, torch.Tensor], key: str) -> bool:
        return all(bool(gradients[key][row].abs().max() > 1e-12) for row in range(n))

    names = [spec.name for spec in blueprint.params(shape[2])]
    first_gradients = step_gradients()
    assert any(has_gradient(first_gradients, key) for key in names)
    later_gradients = step_gradients()
    dead_parameters = [key for key in names if not has_gradient(later_gradients, key)]
    assert not dead_parameters
    if algorithm == Algorithm.GATE and stage == Stage.BLENDING:
        assert all(has_gradient(later_gradients, spec.name) for spec in gate_params(shape[2]))
