"""Blueprints as the kernel wants them: a chain of layers, each with the places of its parameters in a seed's row."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from itertools import accumulate

from workers.layers.blueprint import Blueprint, Conv, Excite, Layer, Norm, ParamSpec, Relu, Towards
from workers.layers.norm import norm_groups
from workers.native import binding

_WIDEST = 15  # taps of a convolution's row, as src/convolution.h has it
_ANY_WIDTH = 8
_KERNEL = 4  # extents of a convolution's kernel [out, into, k, k]


@dataclass(frozen=True)
class Chain:
    """`layers` is an array of binding.LayerStruct; `width`: parameters of the module."""

    layers: ctypes.Array[binding.LayerStruct]
    width: int


def widest_kernel(blueprint: Blueprint, channels: int) -> int:
    """Return the taps in a row of the blueprint's widest convolution, 0 without one."""
    return max((spec.shape[-1] for spec in blueprint.params(channels) if len(spec.shape) == _KERNEL), default=0)


def trains(blueprint: Blueprint) -> bool:
    """Whether the kernel computes it: a chain of layers, whose convolutions are not too wide."""
    return bool(blueprint.residual) and widest_kernel(blueprint, _ANY_WIDTH) <= _WIDEST


@functools.lru_cache(maxsize=256)
def chain_of(blueprint: Blueprint, channels: int) -> Chain:
    """Return the layers of `blueprint`, declared as `residual`, over `channels` channels."""
    specs = {spec.name: spec for spec in blueprint.params(channels)}
    ends = accumulate(spec.size for spec in specs.values())
    at = {name: end - specs[name].size for name, end in zip(specs, ends, strict=True)}
    layers, into = [], channels
    for layer in blueprint.residual:
        found = _layer(layer, into, specs, at)
        layers.append(found)
        into = found.outputs
    return Chain((binding.LayerStruct * len(layers))(*layers), sum(spec.size for spec in specs.values()))


def _layer(layer: Layer, into: int, specs: dict[str, ParamSpec], at: dict[str, int]) -> binding.LayerStruct:
    def made(kind: int, size: int, *names: str, outputs: int = into) -> binding.LayerStruct:
        return binding.LayerStruct(kind, into, outputs, size, (binding.Int * 3)(*(at[name] for name in names)))

    match layer:
        case Conv():
            shape = specs[layer.name].shape
            kind = binding.DEPTHWISE if layer.depthwise else binding.CONV
            return made(kind, shape[-1], layer.name, outputs=shape[0])
        case Norm():
            return made(binding.NORM, norm_groups(into), f"{layer.prefix}.gain", f"{layer.prefix}.bias")
        case Relu():
            return made(binding.RELU, 0)
        case Towards():
            return made(binding.TOWARDS, 0, layer.name)
        case Excite():
            return made(binding.EXCITE, specs[layer.squeeze].shape[1], layer.squeeze, layer.excite, layer.bias)
