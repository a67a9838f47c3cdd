"""A level of hosts against torch's plain layers: outputs, seed modules joined to the host, and gradients."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from benchmarks.kernels import per_minibatch
from benchmarks.worlds import Case
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels.meta_device import META
from support.worlds.tensor_world import BATCH, ENVS, crowded, env_path, orders, random

from esper_ab.contracts import catalog
from workers.kinds.growth.bank.network import (
    BatchStatistics,
    Blend,
    SeedGroup,
    SlotSeeds,
    bound,
    gate_params,
    level_forward,
    seed_delta,
    seed_input,
)
from workers.kinds.growth.bank.stack import Places, Stack, births, by_name
from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.layers.blueprint import Blueprint, ParamSpec
from workers.kinds.growth.tasks.digits import TASK
from workers.kinds.growth.vocabulary import Algorithm, Stage

HOSTS = 3


def plain(
    x: torch.Tensor, parameters: list[torch.Tensor], mean: torch.Tensor, var: torch.Tensor, pools: int, training: bool
) -> torch.Tensor:
    """Of one host: images [B,I,H,W]."""
    weight, gain, bias = parameters
    y = F.batch_norm(F.conv2d(x, weight, padding=weight.shape[-1] // 2), mean, var, gain, bias, training)
    y = F.relu(y)
    return F.max_pool2d(y, 2) if pools else y


@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize(("side", "pools"), [(1, 0), (2, 0), (2, 1), (7, 0), (7, 1)])
def test_a_level_computes_convolution_norm_pooling_and_relu(
    on_cpu: bool, training: bool, shared: bool, kernel: int, pools: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gains of both signs, odd sides; outputs, gradients and running moments; images of each host, or for all."""
    monkeypatch.setattr(_device, "is_cpu", lambda _device: on_cpu)
    spec = dataclasses.replace(TASK.host, in_channels=3, levels=1, kernel=kernel, pools=pools)
    shapes = {"0.conv": (8, 3, kernel, kernel), "0.bn.gain": (8,), "0.bn.bias": (8,)}
    p = {name: random(HOSTS, *shape).requires_grad_() for name, shape in shapes.items()}
    leaves = list(p.values())
    moments, expected_moments = (BatchStatistics(random(HOSTS, 8), random(HOSTS, 8).square() + 0.1) for _ in range(2))
    x = random(6, side, side, 1 if shared else HOSTS, 3, rng_seed=4)
    y = level_forward(x, p, spec, 0, moments, training=training)
    images = x.expand(-1, -1, -1, HOSTS, -1).permute(3, 0, 4, 1, 2)
    outputs = [
        plain(
            images[n], [leaf[n] for leaf in leaves], expected_moments.mean[n], expected_moments.var[n], pools, training
        )
        for n in range(HOSTS)
    ]
    expected = torch.stack(outputs).permute(1, 3, 4, 0, 2)
    torch.testing.assert_close(y, expected, rtol=1e-10, atol=1e-10)
    g = random(*y.shape, rng_seed=9)
    outputs, expected_grads = (torch.autograd.grad(output, leaves, g) for output in (y, expected))
    torch.testing.assert_close(outputs, expected_grads, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close([moments.mean, moments.var], [expected_moments.mean, expected_moments.var])


STAGES = [Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]
SEEDS = st.tuples(st.sampled_from(STAGES), st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from(Algorithm))
BLUEPRINTS: dict[str, Blueprint] = {
    "scaled": Blueprint(  # torch code, no chain of layers
        "scaled", lambda c: (ParamSpec("weight", (c,), bound=0.4),), lambda x, p: x + torch.sin(x) * p["weight"]
    )
} | {
    name: catalog.entry("workers.kinds.growth.blueprints", name, "BLUEPRINT")
    for name in catalog.names("workers.kinds.growth.blueprints")
}


def grown(name: str, count: int) -> SeedGroup:
    """So many seeds of a blueprint, no two with the same parameters."""
    blueprint = BLUEPRINTS[name]
    stack = Stack((*blueprint.params(8), *gate_params(8)), count, torch.device("cpu"), torch.float64)
    births([(stack, slice(None), (env_path(0) / name).generator().random((count, stack.width)))])
    stack.values += 0.3
    return SeedGroup(blueprint, stack, torch.arange(count), None)


@settings(max_examples=60)
@given(
    seeds_by_blueprint=st.dictionaries(
        st.sampled_from(sorted(BLUEPRINTS)), st.lists(SEEDS, min_size=1, max_size=3), min_size=1
    ),
    side=st.sampled_from([1, 2, 4]),
    size=st.sampled_from([0.1, 1.0, 10.0]),
    all_rows=st.booleans(),
    on_cpu=st.booleans(),
)
def test_joining_several_seed_modules_equals_joining_them_one_by_one(
    seeds_by_blueprint: dict[str, list[tuple[Stage, float, Algorithm]]],
    side: int,
    size: float,
    all_rows: bool,
    on_cpu: bool,
) -> None:
    """Features, their gradient and those of all parameters; rows without a seed are what they were, to the bit."""
    seeds = [seed for seed_list in seeds_by_blueprint.values() for seed in seed_list]
    n = len(seeds)
    rows = list(range(n)) if all_rows else torch.arange(n + 2).roll(3)[:n].tolist()
    h = (size * random(3, side, side, n if all_rows else n + 2, 8)).requires_grad_()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_device, "is_cpu", lambda _device: on_cpu)
        blend = Blend.of(*(np.array(values) for values in zip(*seeds, strict=True)), h)
        groups = tuple(grown(name, len(seed_list)) for name, seed_list in seeds_by_blueprint.items())
        row_places = None if all_rows else Places.of(torch.tensor(rows), h.shape[3])
        flat_values = [group.stack.values.requires_grad_() for group in groups]
        params = [by_name(group.stack.specs, values) for group, values in zip(groups, flat_values, strict=True)]
        y = SlotSeeds(groups, row_places, blend).forward(h, params)
        expected_rows = list(h.unbind(3))
        kinds = [
            (index, index_in_group)
            for index, group in enumerate(groups)
            for index_in_group in range(len(group.members))
        ]
        for row, (index, index_in_group), seed in zip(rows, kinds, seeds, strict=True):
            grad = h[:, :, :, [row]]
            seed_list = Blend.of(*(np.array([value]) for value in seed), h)
            x = seed_input(grad, seed_list)
            p = {name: value[index_in_group : index_in_group + 1] for name, value in params[index].items()}
            d = groups[index].blueprint.forward(x, p) - x
            expected_rows[row] = (grad + seed_delta(grad, x, d, p, seed_list))[:, :, :, 0]
        g = random(*h.shape, rng_seed=5)
        grads, expected = (
            torch.autograd.grad(output, [h, *flat_values], g) for output in (y, torch.stack(expected_rows, 3))
        )
    torch.testing.assert_close(y, torch.stack(expected_rows, 3), rtol=1e-9, atol=1e-9)
    for grad, expected_grad in zip(grads, expected, strict=True):
        torch.testing.assert_close(grad, expected_grad, rtol=1e-8, atol=1e-8)
    other_rows = [row for row in range(h.shape[3]) if row not in rows]
    assert torch.equal(y[:, :, :, other_rows], h[:, :, :, other_rows])
    assert torch.equal(grads[0][:, :, :, other_rows], g[:, :, :, other_rows])


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something was fetched from the device; what comes is zeros."""
    counted: Counter[str] = Counter()
    monkeypatch.setattr(
        torch.Tensor, "cpu", lambda self: counted.update(["cpu"]) or torch.zeros(self.shape, dtype=self.dtype)
    )
    return counted


@pytest.mark.parametrize("amp", ["off", "bf16", "fp16"])
@pytest.mark.parametrize("samples", [BATCH, 5 * BATCH])
def test_an_epoch_and_a_validation_each_synchronise_once(waits: Counter[str], amp: str, samples: int) -> None:
    """A validation with counterfactuals, for what was right and the losses together."""
    bank, table, split = crowded(TASK, META, samples, amp=amp)
    loss, _ = bank.train_epoch(table, np.arange(ENVS), split, orders(ENVS, samples))
    assert (loss.shape, waits) == ((ENVS,), {"cpu": 1})
    measured_pass = bank.measure(table, np.arange(ENVS), split, ablate=True)
    assert (measured_pass.loss.shape, waits) == ((ENVS,), {"cpu": 2})


@pytest.mark.parametrize(
    ("task", "live_seeds", "launch_limit"),
    [
        ("digits", 0, 65),
        ("cifar10", 0, 90),
        ("digits", 3, 800),
        pytest.param("cifar10", 3, 840, marks=pytest.mark.slow),
    ],
)
def test_a_minibatch_launches_a_bounded_number_of_kernels(task: str, live_seeds: int, launch_limit: int) -> None:
    """Of bare hosts, and with every blueprint in every slot; however many hosts there are."""
    launches_of_few, launches_of_many = (
        per_minibatch(Case(task=task, n_envs=n, live_seeds=live_seeds)).total() for n in (16, 64 if live_seeds else 128)
    )
    assert launches_of_few <= launch_limit
    assert launches_of_many <= min(launch_limit, launches_of_few + 2)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_batch_norm_of_one_value_per_channel_yields_the_bias(dtype: torch.dtype) -> None:
    """A last batch of one sample in a level of one pixel, which torch's own batch norm refuses."""
    spec = dataclasses.replace(TASK.host, in_channels=2, base=3, levels=1, kernel=3, pools=0)
    x = random(1, 1, 1, HOSTS, 2).to(dtype).requires_grad_()
    kernel = random(HOSTS, 3, 2, 3, 3).requires_grad_()
    gain = random(HOSTS, 3).requires_grad_()
    bias = random(HOSTS, 3, rng_seed=1).requires_grad_()
    mean = torch.ones(HOSTS, 3, dtype=torch.float64)
    var = torch.full((HOSTS, 3), 2.0, dtype=torch.float64)
    y = level_forward(
        x, {"0.conv": kernel, "0.bn.gain": gain, "0.bn.bias": bias}, spec, 0, BatchStatistics(mean, var), training=True
    )
    assert y.dtype == dtype
    assert torch.equal(y[0, 0, 0], F.relu(bias).to(dtype))
    dx, dkernel, dgain, dbias = torch.autograd.grad(y.sum(), (x, kernel, gain, bias))
    assert [torch.count_nonzero(g).item() for g in (dx, dkernel, dgain)] == [0, 0, 0]
    assert torch.equal(dbias, (bias > 0).double())
    value = torch.einsum("ni,noi->no", x[0, 0, 0].double(), kernel[..., 1, 1])
    assert torch.allclose(mean, 0.9 + 0.1 * value, rtol=1e-2, atol=1e-2)
    assert torch.allclose(var, torch.full_like(var, 1.8))


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
def test_an_incubating_seed_module_trains_without_changing_the_output(algorithm: Algorithm) -> None:
    h = features()
    y, p = joined(h, Stage.TRAINING, 0.0, algorithm)
    assert torch.equal(y, h)  # to the bit
    assert jacobian_is_identity(h, y)
    assert torch.autograd.grad(y.square().sum(), p["w"])[0].abs().sum() > 0


@pytest.mark.parametrize("stage", BLENDED)
@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("algorithm", [Algorithm.ADD, Algorithm.GATE])
def test_the_host_keeps_its_full_gradient_at_any_alpha(stage: Stage, alpha: float, algorithm: Algorithm) -> None:
    y, _ = joined(h := features(), stage, alpha, algorithm)
    assert jacobian_is_identity(h, y)
    assert not torch.allclose(y, h)


@pytest.mark.parametrize("stage", BLENDED)
def test_the_multiply_algorithm_scales_the_host_gradient_by_its_factor(stage: Stage) -> None:
    h = features()
    y, p = joined(h, stage, 0.5, Algorithm.MULTIPLY)
    factor = 1.0 + 0.5 * torch.tanh(h.detach() * (p["w"].detach() - 1.0))
    assert torch.allclose(y, h * factor)
    (gradient,) = torch.autograd.grad(y.sum(), h)
    assert torch.allclose(gradient, factor)
    assert factor.min() >= 0.5
    assert factor.max() <= 1.5


@pytest.mark.parametrize("algorithm", list(Algorithm))
def test_a_fossilised_module_passes_gradients_to_the_host(algorithm: Algorithm) -> None:
    h = features()
    holding_output, _ = joined(h, Stage.HOLDING, 1.0, algorithm)
    fossil, p = joined(h, Stage.FOSSILIZED, 1.0, algorithm)
    assert torch.equal(holding_output, fossil)
    if algorithm == Algorithm.ADD:  # delta 0.5 h is within the bound: y = 1.5 h
        assert torch.allclose(torch.autograd.grad(fossil.sum(), h)[0], p["w"].detach().expand_as(h))
    else:
        assert not torch.allclose(*(torch.autograd.grad(y.sum(), h)[0] for y in (holding_output, fossil)))


def test_the_gradient_of_a_blending_seed_module_is_scaled_by_alpha() -> None:
    h = features()
    full_output, p = joined(h, Stage.HOLDING, 1.0, Algorithm.ADD)
    half_output, q = joined(h, Stage.BLENDING, 0.5, Algorithm.ADD)
    whole = torch.autograd.grad(full_output.sum(), p["w"])[0]
    assert torch.allclose(torch.autograd.grad(half_output.sum(), q["w"])[0], 0.5 * whole)


def test_the_contribution_of_a_seed_module_is_bounded_by_the_host() -> None:
    """And an exact identity has finite gradients."""
    h = features().detach()
    small_delta, large_delta = (delta * bound(delta, h) for delta in (0.1 * h, 50.0 * h))
    assert torch.allclose(small_delta, 0.1 * h)
    assert torch.allclose(large_delta, h)
    delta = torch.zeros_like(h).requires_grad_()
    (gradient,) = torch.autograd.grad((delta * bound(delta, h)).sum(), delta)
    assert torch.equal(gradient, torch.ones_like(h))


def test_gradients_of_the_bound_do_not_flow_through_the_host() -> None:
    h = features()
    delta = (3.0 * h.detach()).requires_grad_()
    bounded_delta = delta * bound(delta, h)
    assert torch.autograd.grad(bounded_delta.sum(), h, allow_unused=True, retain_graph=True)[0] is None
    # Beyond the bound the size of delta no longer matters: moving along delta itself changes nothing.
    (gradient,) = torch.autograd.grad(bounded_delta, delta, torch.ones_like(bounded_delta))
    assert torch.allclose((gradient * delta).sum((1, 2, 4)), torch.zeros(3, 1, dtype=h.dtype), atol=1e-9)


@pytest.mark.parametrize("times", [1.0, 1e25, 1e40], ids=["", "its square overflows", "it overflows"])
@pytest.mark.parametrize("size", [1.0, 1e25], ids=["", "the features' square overflows"])
def test_an_overflowing_delta_can_still_be_multiplied(size: float, times: float) -> None:
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
