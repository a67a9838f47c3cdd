"""Defines blueprints, and the batched layers that hosts and blueprints consist of.

Activations are [B, H, W, N, C]: N networks of one architecture side by side. In memory this is the channels-last layout
of one tensor with N*C channels, so one grouped kernel serves all networks. Parameters are stacked on a leading N.

Activations may have lower precision than parameters. Convolutions then use the activations' precision; norms and
per-sample layers (pooled, linear) use the parameters'. Every module returns the precision of its input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.kinds.growth.layers.operations import conv, group_norm

Params = Mapping[str, Tensor]


@dataclass(frozen=True)
class ParamSpec:
    """One parameter of one network, initialised uniformly in center ± bound."""

    name: str
    shape: tuple[int, ...]
    bound: float = 0.0
    center: float = 0.0

    @property
    def size(self) -> int:
        """Number of scalars."""
        return math.prod(self.shape)


def fan_in_bound(fan_in: int) -> float:
    """Return the bound of the initialisation U(±1/sqrt(fan_in)), torch's default for convolutions and linear layers."""
    return 1.0 / math.sqrt(fan_in)


@dataclass(frozen=True)
class Blueprint:
    """A shape-preserving module; a file of the folder `blueprints` has `BLUEPRINT = Blueprint(...)` or `residual(...)`.

    `params(channels)` lists its parameters. `forward(x, p)` maps x [B, H, W, N, C] and stacked parameters [N, …] to
    s(x) of the same shape and precision. Contract (tests/catalog/test_blueprints.py): networks never mix; at least one
    parameter has a non-zero gradient at birth, and all parameters have one after one optimiser step, under every
    blending style.

    If a blueprint adds a chain of layers to x, declare it with `residual`, so that the kernel of workers/native can
    train it.
    """

    name: str
    params: Callable[[int], tuple[ParamSpec, ...]]
    forward: Callable[[Tensor, Params], Tensor]
    residual: tuple[Layer, ...] = ()  # s(x) − x as a chain of layers

    def delta(self, x: Tensor, p: Params) -> Tensor:
        """Return s(x) − x, of the shape and precision of x."""
        if self.residual:
            return chained(self.residual, x, p)
        return self.forward(x, p) - x


@dataclass(frozen=True)
class Conv:
    """A layer that calls `conv`; `name` is the parameter that holds its kernel."""

    name: str
    depthwise: bool = False


@dataclass(frozen=True)
class Norm:
    """A layer that calls `group_norm` with the parameters {prefix}.gain and {prefix}.bias."""

    prefix: str


@dataclass(frozen=True)
class Relu:
    """max(0, ·)."""


@dataclass(frozen=True)
class Towards:
    """tanh(scale)·(y − x) for activations y, where x is the chain's input; `name` is the scale parameter."""

    name: str


@dataclass(frozen=True)
class Excite:
    """y·(σ(excite·SiLU(squeeze·pool(y)) + bias) − 1): the change that squeeze and excitation makes."""

    squeeze: str
    excite: str
    bias: str


Layer = Conv | Norm | Relu | Towards | Excite


def residual(name: str, params: Callable[[int], tuple[ParamSpec, ...]], *chain: Layer) -> Blueprint:
    """Return the blueprint x + chain(x)."""
    return Blueprint(name, params, lambda x, p: x + chained(chain, x, p), chain)


def chained(chain: tuple[Layer, ...], x: Tensor, p: Params) -> Tensor:
    """Return chain(x), of the shape and precision of x."""
    y = x
    for layer in chain:
        match layer:
            case Conv():
                y = conv(y, p[layer.name], layer.depthwise)
            case Norm():
                y = group_norm(y, p[f"{layer.prefix}.gain"], p[f"{layer.prefix}.bias"])
            case Relu():
                y = F.relu(y)
            case Towards():
                y = torch.tanh(p[layer.name]).to(x.dtype) * (y - x)
            case Excite():
                hidden = F.silu(linear(pooled(y), p[layer.squeeze]))  # [N,B,r]
                y = y * spread(torch.sigmoid(linear(hidden, p[layer.excite], p[layer.bias])) - 1.0, y)
    return y


def pooled(x: Tensor) -> Tensor:
    """Return the global average pool, [B,H,W,N,C] -> [N,B,C], in float32 or higher precision."""
    return x.mean((1, 2), dtype=torch.promote_types(x.dtype, torch.float32)).transpose(0, 1)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return the linear layer's output [N,B,O] for x [N,B,I], weight [N,I,O], bias [N,O]."""
    if bias is None:
        return torch.bmm(x, weight)
    return torch.baddbmm(bias.unsqueeze(1), x, weight)


def spread(values: Tensor, template: Tensor) -> Tensor:
    """Return per-sample channel factors [N,B,C] as [B,1,1,N,C], to multiply with the activations `template`."""
    return values.transpose(0, 1)[:, None, None].to(template.dtype)


def norm_params(channels: int, prefix: str = "norm", gain: float = 1.0) -> tuple[ParamSpec, ParamSpec]:
    """Return gain and bias of a group norm."""
    return ParamSpec(f"{prefix}.gain", (channels,), center=gain), ParamSpec(f"{prefix}.bias", (channels,))


def conv_params(name: str, out_channels: int, in_channels: int, kernel: int) -> ParamSpec:
    """Return a convolution kernel [out, into, kernel, kernel]."""
    return ParamSpec(
        name, (out_channels, in_channels, kernel, kernel), bound=fan_in_bound(in_channels * kernel * kernel)
    )
