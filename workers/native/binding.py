"""The kernel's structs and functions as src/api.h declares them, its memory, and blueprints as it wants them.

A blueprint is a chain of layers, each with the places of its parameters in a seed's row.
"""

from __future__ import annotations

import ctypes
import functools
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

from workers.layers.blueprint import Blueprint, Conv, Excite, Layer, Norm, ParamSpec, Relu, Towards
from workers.layers.operations import norm_groups

Pointer, Int, Float, Long = ctypes.c_void_p, ctypes.c_int32, ctypes.c_float, ctypes.c_int64

CONV, DEPTHWISE, NORM, RELU, TOWARDS, EXCITE = range(6)  # EsperLayerKind
_STATUS = {1: "no memory", 2: "a convolution of this size, or an image too small for the pools"}  # EsperStatus


class HostStruct(ctypes.Structure):
    """EsperHost."""

    _fields_ = [
        (name, Int) for name in ("in_channels", "height", "width", "base", "levels", "kernel", "pools", "classes")
    ]


class LayerStruct(ctypes.Structure):
    """EsperLayer."""

    _fields_ = [("kind", Int), ("inputs", Int), ("outputs", Int), ("size", Int), ("at", Int * 3)]


class SeedStruct(ctypes.Structure):
    """EsperSeed."""

    _fields_ = [
        ("values", Pointer), ("momentum", Pointer), ("layers", ctypes.POINTER(LayerStruct)), ("n_layers", Int),
        ("width", Int), ("gate", Int), ("gate_hidden", Int), ("join", Int), ("incubating", Int), ("fossil", Int),
        ("trained", Int), ("alpha", Float),
    ]  # fmt: skip


class SplitStruct(ctypes.Structure):
    """EsperSplit."""

    _fields_ = [("images", Pointer), ("labels", Pointer), ("samples", Long)]


class RuleStruct(ctypes.Structure):
    """EsperRule."""

    _fields_ = [
        ("batch_size", Int), ("host_lr", Float), ("seed_lr", Float), ("momentum", Float), ("weight_decay", Float),
        ("max_grad_norm", Float),
    ]  # fmt: skip


class NetworkStruct(ctypes.Structure):
    """EsperNetwork."""

    _fields_ = [
        ("values", Pointer), ("momentum", Pointer), ("mean", ctypes.POINTER(Pointer)), ("var", ctypes.POINTER(Pointer)),
        ("seeds", ctypes.POINTER(SeedStruct)),
    ]  # fmt: skip


class TreeStruct(ctypes.Structure):
    """EsperTree."""

    _fields_ = [
        ("rows", ctypes.POINTER(Int)), ("parents", ctypes.POINTER(Pointer)), ("on", ctypes.POINTER(Pointer)),
        ("real", Int),
    ]  # fmt: skip


_STRUCTS = (HostStruct, LayerStruct, SeedStruct, SplitStruct, RuleStruct, NetworkStruct, TreeStruct)
_LAYOUT = [ctypes.sizeof(struct) for struct in _STRUCTS]


def declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions; ValueError when its structs are not these."""
    found = (Int * 9)()
    library.esper_layout(found)
    if list(found[:8]) != [*_LAYOUT, ctypes.sizeof(Pointer)]:
        raise ValueError(f"the kernel's structs have {list(found[:8])} bytes, not {_LAYOUT}")
    library.esper_open.restype = Pointer
    library.esper_open.argtypes = [ctypes.POINTER(HostStruct), Int]
    library.esper_close.restype = None
    library.esper_close.argtypes = [Pointer]
    network, split, tree, rule = map(ctypes.POINTER, (NetworkStruct, SplitStruct, TreeStruct, RuleStruct))
    library.esper_train.argtypes = [Pointer, rule, network, split, Pointer, Pointer]
    library.esper_measure.argtypes = [Pointer, network, split, tree, Pointer, ctypes.POINTER(ctypes.c_double)]
    return library


def checked(status: int) -> None:
    """MemoryError or ValueError when a call of the kernel failed."""
    if status:
        raise (MemoryError if status == 1 else ValueError)(f"the kernel refuses: {_STATUS[status]}")


class Workspaces:
    """Memory for networks of one shape, one for each thread that computes. What it holds between calls is no state."""

    def __init__(self, library: ctypes.CDLL, host: HostStruct, border: int) -> None:
        self._library, self._host, self._border = library, host, border
        self._free: queue.SimpleQueue[int] = queue.SimpleQueue()

    @contextmanager
    def one(self) -> Iterator[int]:
        """Yield a workspace that nobody else uses meanwhile; MemoryError when there is no memory for a new one."""
        try:
            workspace = self._free.get_nowait()
        except queue.Empty:
            workspace = self._library.esper_open(ctypes.byref(self._host), self._border)
            if not workspace:
                raise MemoryError("no memory for the kernel's activations") from None
        try:
            yield workspace
        finally:
            self._free.put(workspace)

    def __del__(self) -> None:
        while not self._free.empty():
            self._library.esper_close(self._free.get_nowait())


_WIDEST = 15  # taps of a convolution's row, as src/convolution.h has it
_ANY_WIDTH = 8
_KERNEL = 4  # extents of a convolution's kernel [out, into, k, k]


def widest_kernel(blueprint: Blueprint, channels: int) -> int:
    """Return the taps in a row of the blueprint's widest convolution, 0 without one."""
    return max((spec.shape[-1] for spec in blueprint.params(channels) if len(spec.shape) == _KERNEL), default=0)


def trains(blueprint: Blueprint) -> bool:
    """Whether the kernel computes it: a chain of layers, whose convolutions are not too wide."""
    return bool(blueprint.residual) and widest_kernel(blueprint, _ANY_WIDTH) <= _WIDEST


@functools.lru_cache(maxsize=256)
def chain_of(blueprint: Blueprint, channels: int) -> tuple[ctypes.Array[LayerStruct], int]:
    """Return the layers of `blueprint`, declared as `residual`, over `channels` channels, and its parameters' number.
    """
    specs = {spec.name: spec for spec in blueprint.params(channels)}
    ends = accumulate(spec.size for spec in specs.values())
    at = {name: end - specs[name].size for name, end in zip(specs, ends, strict=True)}
    layers, into = [], channels
    for layer in blueprint.residual:
        found = _layer(layer, into, specs, at)
        layers.append(found)
        into = found.outputs
    return (LayerStruct * len(layers))(*layers), sum(spec.size for spec in specs.values())


def _layer(layer: Layer, into: int, specs: dict[str, ParamSpec], at: dict[str, int]) -> LayerStruct:
    def made(kind: int, size: int, *names: str, outputs: int = into) -> LayerStruct:
        return LayerStruct(kind, into, outputs, size, (Int * 3)(*(at[name] for name in names)))

    match layer:
        case Conv():
            shape = specs[layer.name].shape
            kind = DEPTHWISE if layer.depthwise else CONV
            return made(kind, shape[-1], layer.name, outputs=shape[0])
        case Norm():
            return made(NORM, norm_groups(into), f"{layer.prefix}.gain", f"{layer.prefix}.bias")
        case Relu():
            return made(RELU, 0)
        case Towards():
            return made(TOWARDS, 0, layer.name)
        case Excite():
            return made(EXCITE, specs[layer.squeeze].shape[1], layer.squeeze, layer.excite, layer.bias)
