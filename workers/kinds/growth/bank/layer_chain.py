"""Blueprints in the format of the native kernel: a chain of layers.

Each layer has the offsets of its parameters in a seed's row.
"""

from __future__ import annotations

import ctypes
import functools
from itertools import accumulate

from workers.kinds.growth.layers.blueprint import Blueprint, Conv, Excite, Layer, Norm, ParamSpec, Relu, Towards
from workers.kinds.growth.layers.operations import norm_groups
from workers.native.binding import CONV, DEPTHWISE, EXCITE, NORM, RELU, TOWARDS, Int, LayerStruct

_WIDEST = 15  # taps in a row of a convolution, as in src/convolution.h
_ANY_WIDTH = 8
_KERNEL = 4  # number of dimensions of a convolution's kernel [out, into, k, k]


def widest_kernel(blueprint: Blueprint, channels: int) -> int:
    """Return the kernel width of the blueprint's widest convolution; 0 if it has none."""
    kernels = [spec.shape for spec in blueprint.params(channels) if len(spec.shape) == _KERNEL]
    return max((shape[-1] for shape in kernels), default=0)


def trains(blueprint: Blueprint) -> bool:
    """Return whether the kernel can compute the blueprint: a chain of layers whose convolutions are not too wide."""
    return bool(blueprint.residual) and widest_kernel(blueprint, _ANY_WIDTH) <= _WIDEST


@functools.lru_cache(maxsize=256)
def chain_of(blueprint: Blueprint, channels: int) -> tuple[ctypes.Array[LayerStruct], int]:
    """Return the layers of a `residual` blueprint for `channels` channels, and the number of its parameters."""
    specs = {spec.name: spec for spec in blueprint.params(channels)}
    ends = accumulate(spec.size for spec in specs.values())
    offsets = {name: end - specs[name].size for name, end in zip(specs, ends, strict=True)}
    layers = []
    in_channels = channels
    for layer in blueprint.residual:
        struct = _layer(layer, in_channels, specs, offsets)
        layers.append(struct)
        in_channels = struct.outputs
    return (LayerStruct * len(layers))(*layers), sum(spec.size for spec in specs.values())


def _layer(layer: Layer, in_channels: int, specs: dict[str, ParamSpec], offsets: dict[str, int]) -> LayerStruct:
    def make_struct(kind: int, size: int, *names: str, outputs: int = in_channels) -> LayerStruct:
        return LayerStruct(kind, in_channels, outputs, size, (Int * 3)(*(offsets[name] for name in names)))

    match layer:
        case Conv():
            shape = specs[layer.name].shape
            kind = DEPTHWISE if layer.depthwise else CONV
            return make_struct(kind, shape[-1], layer.name, outputs=shape[0])
        case Norm():
            return make_struct(NORM, norm_groups(in_channels), f"{layer.prefix}.gain", f"{layer.prefix}.bias")
        case Relu():
            return make_struct(RELU, 0)
        case Towards():
            return make_struct(TOWARDS, 0, layer.name)
        case Excite():
            return make_struct(EXCITE, specs[layer.squeeze].shape[1], layer.squeeze, layer.excite, layer.bias)
