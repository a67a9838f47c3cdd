"""What a blueprint is, and the few batched layers that hosts and blueprints are made of.

Activations are [B, H, W, N, C]: N networks of one architecture side by side, in memory the channels-last layout of one
tensor with N*C channels, so that one grouped kernel serves all networks. Parameters are stacked on a leading N.

Activations may be of less precision than parameters: convolutions are then done in that of the activations, while
norms and everything per sample (pooled, linear) stay in that of the parameters. A module returns what it was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.blueprints._convolution import grouped

Params = Mapping[str, Tensor]
_GROUP_NORM_EPS = 1e-5


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of one network: starts uniform in center ± bound."""

    name: str
    shape: tuple[int, ...]
    bound: float = 0.0
    center: float = 0.0

    @property
    def size(self) -> int:
        """Number of scalars."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size


def fan_in_bound(fan_in: int) -> float:
    """Bound of the uniform initialisation U(±1/sqrt(fan_in)), torch's default for convolutions and linear layers."""
    return 1.0 / math.sqrt(fan_in)


@dataclass(frozen=True)
class Blueprint:
    """A shape-preserving module. One file of this folder each: `BLUEPRINT = Blueprint(...)`.

    `params(channels)` lists its parameters; `forward(x, p)` maps x [B, H, W, N, C] and stacked parameters [N, …] to
    s(x) of the same shape and precision. Contract (tests/catalog/test_blueprints.py): keeps shape and precision,
    networks never mix, at birth at least one and after one optimiser step every parameter has a non-zero gradient under
    every blending style.
    """

    name: str
    params: Callable[[int], tuple[ParamSpec, ...]]
    forward: Callable[[Tensor, Params], Tensor]


def conv(x: Tensor, weight: Tensor, depthwise: bool = False) -> Tensor:
    """Same-padded, no bias: x [B,H,W,N,C], weight [N,O,C,k,k] (depthwise: [N,C,1,k,k]) -> [B,H,W,N,O]."""
    b, h, w, n, c = x.shape
    out, k = weight.shape[1], weight.shape[-1]
    if k > 1 and h == w == 1:
        weight, k = weight[..., k // 2 :, k // 2 :][..., :1, :1], 1  # around a single pixel there is only padding
    image = x.reshape(b, h, w, n * c).permute(0, 3, 1, 2)  # NCHW, channels last in memory
    kernel = weight.reshape(n * out, *weight.shape[2:]).to(x.dtype)
    if k == 1 and not depthwise:
        y = grouped(image, kernel, n)
    else:
        kernel = kernel.contiguous(memory_format=torch.channels_last)
        y = F.conv2d(image, kernel, padding=k // 2, groups=n * c if depthwise else n)
        y = y.contiguous(memory_format=torch.channels_last)  # a GPU's depthwise kernels answer in another layout
    return y.permute(0, 2, 3, 1).reshape(b, h, w, n, out)


def norm_groups(channels: int) -> int:
    """Groups of a group norm: the first of 32, 16, …, 1 that leaves 16 channels each, else the first divisor."""
    divisors = [g for g in (32, 16, 8, 4, 2, 1) if channels % g == 0]
    return next((g for g in divisors if channels // g >= 16), divisors[0])


class _GroupNorm(torch.autograd.Function):
    """torch's group norm of a channels-last image, every gradient always computed.

    torch 2.13 on the CPU crashes the process when it is told that the input's gradient is not needed, which is so for
    a seed that looks at detached features (tests/tensor/test_blueprint_layers.py).
    """

    @staticmethod
    def forward(context: Any, image: Tensor, gain: Tensor, bias: Tensor, groups: int) -> Tensor:
        b, c, h, w = image.shape
        image = image.contiguous(memory_format=torch.channels_last)
        y, mean, inverse_std = torch.ops.aten.native_group_norm(
            image.to(gain.dtype), gain, bias, b, c, h * w, groups, _GROUP_NORM_EPS
        )
        context.save_for_backward(image, gain, mean, inverse_std)
        context.groups = groups
        return cast(Tensor, y.to(image.dtype))

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        image, gain, mean, inverse_std = context.saved_tensors
        b, c, h, w = image.shape
        grad = grads[0].to(gain.dtype).contiguous(memory_format=torch.channels_last)
        every = [True, True, True]
        dx, dgain, dbias = torch.ops.aten.native_group_norm_backward(
            grad, image.to(gain.dtype), mean, inverse_std, gain, b, c, h * w, context.groups, every
        )
        return dx.to(image.dtype), dgain, dbias, None


def group_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Group normalisation of every network by itself. x [B,H,W,N,C], gain and bias [N,C]."""
    b, h, w, n, c = x.shape
    image = x.reshape(b, h, w, n * c).permute(0, 3, 1, 2)
    y = _GroupNorm.apply(image, gain.reshape(-1), bias.reshape(-1), n * norm_groups(c))  # type: ignore[no-untyped-call]
    return cast(Tensor, y).permute(0, 2, 3, 1).reshape(b, h, w, n, c)


def pooled(x: Tensor) -> Tensor:
    """Global average pool: [B,H,W,N,C] -> [N,B,C], in float32 at least."""
    return x.mean((1, 2), dtype=torch.promote_types(x.dtype, torch.float32)).transpose(0, 1)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [N,B,I], weight [N,I,O], bias [N,O] -> [N,B,O]."""
    return torch.bmm(x, weight) if bias is None else torch.baddbmm(bias.unsqueeze(1), x, weight)


def spread(values: Tensor, like: Tensor) -> Tensor:
    """Per-sample channel factors [N,B,C] -> [B,1,1,N,C], to multiply the activations `like` with."""
    return values.transpose(0, 1)[:, None, None].to(like.dtype)


def norm_params(channels: int, prefix: str = "norm", gain: float = 1.0) -> tuple[ParamSpec, ParamSpec]:
    """Gain and bias of a group norm."""
    return ParamSpec(f"{prefix}.gain", (channels,), center=gain), ParamSpec(f"{prefix}.bias", (channels,))


def conv_params(name: str, out: int, into: int, kernel: int) -> ParamSpec:
    """A convolution kernel [out, into, kernel, kernel]."""
    return ParamSpec(name, (out, into, kernel, kernel), bound=fan_in_bound(into * kernel * kernel))
