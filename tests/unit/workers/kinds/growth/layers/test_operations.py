"""Joint convolutions and norms against torch's layers per network, with gradients."""

import pytest
import torch
import torch.nn.functional as F
from support.processes.children import python
from support.worlds.tensor_world import random

from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.layers.operations import by_groups, by_products, conv, group_norm, norm_groups

SHAPES = [(3, 8, 3), (8, 16, 3), (16, 8, 5), (1, 8, 1), (8, 16, 1)]


def by_network(x: torch.Tensor, weight: torch.Tensor, depthwise: bool = False) -> torch.Tensor:
    """Network by network."""
    n, _, _, k, _ = weight.shape
    images = x.expand(-1, -1, -1, n, -1).permute(3, 0, 4, 1, 2)  # [n,B,I,H,W]
    groups = images.shape[2] if depthwise else 1
    outputs = [
        F.conv2d(image, kernel, padding=k // 2, groups=groups) for image, kernel in zip(images, weight, strict=True)
    ]
    return torch.stack(outputs).permute(1, 3, 4, 0, 2)


def assert_equal(actual_y: torch.Tensor, expected_y: torch.Tensor, leaves: list[torch.Tensor]) -> None:
    torch.testing.assert_close(actual_y, expected_y, rtol=1e-10, atol=1e-10)
    g = random(*actual_y.shape, rng_seed=5)
    grads, expected = (torch.autograd.grad(y, leaves, g) for y in (actual_y, expected_y))
    torch.testing.assert_close(grads, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("way", [by_groups, by_products])
@pytest.mark.parametrize(("inputs", "outputs", "k"), SHAPES)
@pytest.mark.parametrize("sides", [(7, 6), (1, 1), (2, 5)])
@pytest.mark.parametrize("networks", [1, 3])
@pytest.mark.parametrize("shared_input", [False, True])
def test_a_joint_convolution_equals_one_convolution_per_network(
    way, inputs, outputs, k, sides, networks, shared_input
) -> None:
    """Of an image for each network, or of one that all of them see."""
    x = random(5, *sides, 1 if shared_input else networks, inputs).requires_grad_(not shared_input)
    weight = random(networks, outputs, inputs, k, k, rng_seed=1).requires_grad_()
    assert_equal(way(x, weight), by_network(x, weight), [weight] if shared_input else [x, weight])


@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("side", [1, 4])
def test_a_depthwise_convolution_equals_torch_per_network(
    on_cpu: bool, k: int, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_device, "is_cpu", lambda _device: on_cpu)
    x = random(5, side, side, 3, 8).requires_grad_()
    weight = random(3, 8, 1, k, k, rng_seed=1).requires_grad_()
    assert_equal(conv(x, weight, depthwise=True), by_network(x, weight, depthwise=True), [x, weight])


@pytest.mark.parametrize("way", [by_groups, by_products])
@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_an_overflow_in_one_network_does_not_affect_the_others(way, value: float) -> None:
    """Neither its features nor its kernel nor the gradient of its output."""
    clean_arrays = {"x": random(4, 8, 8, 4, 3), "weight": random(4, 8, 3, 3, 3, rng_seed=1), "g": random(4, 8, 8, 4, 8)}
    for broken_name in clean_arrays:
        results = []
        for is_broken in (False, True):
            x, weight, g = (tensor.clone() for tensor in clean_arrays.values())
            if is_broken:
                part = {"x": x[:, :, :, 1], "weight": weight[1], "g": g[:, :, :, 1]}[broken_name]
                part.fill_(value)
            y = way(x.requires_grad_(), weight.requires_grad_())
            dx, dweight = torch.autograd.grad(y, [x, weight], g)
            results.append([y.permute(3, 0, 1, 2, 4), dx.permute(3, 0, 1, 2, 4), dweight])
        for clean_result, broken_result in zip(*results, strict=True):
            assert torch.equal(clean_result[[0, 2, 3]], broken_result[[0, 2, 3]])


@pytest.mark.parametrize("on_cpu", [True, False])
def test_a_convolution_of_half_precision_input_returns_half_precision(
    on_cpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_device, "is_cpu", lambda _device: on_cpu)
    x = random(4, 5, 5, 2, 3).bfloat16()
    weight = random(2, 8, 3, 3, 3, rng_seed=1).float().requires_grad_()
    y = conv(x, weight)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), by_network(x.float(), weight), rtol=0.02, atol=0.1)
    (grad,) = torch.autograd.grad(y.sum(), weight)
    assert grad.dtype == torch.float32


@pytest.mark.parametrize(("channels", "groups"), [(8, 8), (16, 1), (32, 2), (64, 4), (128, 8), (12, 4)])
def test_the_number_of_normalisation_groups_follows_from_the_channels(channels: int, groups: int) -> None:
    assert norm_groups(channels) == groups


@pytest.mark.parametrize("channels", [8, 32])
@pytest.mark.parametrize("side", [1, 3])
def test_group_norm_and_its_gradients_equal_torch(channels: int, side: int) -> None:
    shapes = ((5, side, side, 3, channels), (3, channels), (3, channels))
    x, gain, bias = leaves = [random(*shape).requires_grad_() for shape in shapes]
    image = x.permute(0, 3, 4, 1, 2)  # [B, N, C, H, W]
    image = image if side > 1 else image.expand(-1, -1, -1, 2, 1)  # torch refuses to normalise single numbers
    parts = [F.group_norm(image[:, n], norm_groups(channels), gain[n], bias[n])[:, :, :side] for n in range(3)]
    assert_equal(group_norm(*leaves), torch.stack(parts, 1).permute(0, 3, 4, 1, 2), leaves)


def test_group_norm_of_detached_features_does_not_crash_the_process() -> None:
    """torch 2.13's own backward does: the input's gradient is not needed there. In a process of its own."""
    program = (
        "import torch; from workers.kinds.growth.layers.operations import group_norm\n"
        "gain, bias = torch.ones(3, 8, requires_grad=True), torch.zeros(3, 8, requires_grad=True)\n"
        "y = group_norm(torch.randn(64, 4, 4, 3, 8), gain, bias)\n"
        "torch.autograd.grad(y.square().sum(), [gain, bias])\n"
    )
    process = python("-c", program)
    assert process.returncode == 0, process.stderr
