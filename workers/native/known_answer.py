"""The known-answer test of a library: the bits that the library computes for a small network with fixed numbers.

The network is trained and measured through the binding. The test covers every kind of layer and join, an incomplete
batch and an image of odd width. The numbers of the training rule all differ, so the answer changes if the binding
exchanges two of them.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Floats32
from workers.native import binding
from workers.native.binding import CONV, DEPTHWISE, EXCITE, GATE, MULTIPLY, NORM, RELU, TOWARDS, LayerStruct

_HOST = binding.HostStruct(in_channels=2, height=6, width=5, base=4, levels=2, kernel=3, pools=1, classes=3)
_SAMPLES = 45
_EACH = 2 * 6 * 5
_BATCH = 19
_HOST_WIDTH = 72 + 8 + 288 + 16 + 24 + 3
_FIRST_WIDTH = 81 + 4 * 8 + 8 + 8 + 1
_SECOND_WIDTH = 592
# A gated chain over 4 channels, and a fossil of a 3x3 convolution over 8.
_FIRST = (
    (DEPTHWISE, 4, 4, 3, (0,)),
    (CONV, 4, 4, 1, (36,)),
    (NORM, 4, 4, 4, (52, 56)),
    (RELU, 4, 4, 0, ()),
    (TOWARDS, 4, 4, 0, (60,)),
    (EXCITE, 4, 4, 2, (61, 69, 77)),
)
_SECOND = ((CONV, 8, 8, 3, (0,)), (NORM, 8, 8, 8, (576, 584)), (RELU, 8, 8, 0, ()))
# The tree of configurations.
_ROWS = (2, 3)
_PARENTS = (np.array([0, 0]), np.array([0, 1, 1]))
_ON = (np.array([0, 1], np.uint8), np.array([1, 0, 1], np.uint8))
_REAL = 2


def known_answer(library: ctypes.CDLL) -> str:
    """Return the sha256 of losses, hits, moments and parameters after one epoch; ValueError if the kernel fails."""
    images = _numbers(0, _SAMPLES * _EACH, 1.5, 0.5)
    host = _numbers(1, _HOST_WIDTH, 0.5, 0.0)
    first_rows = _numbers(2, _FIRST_WIDTH, 0.5, 0.1)
    second_rows = _numbers(3, _SECOND_WIDTH, 0.3, 0.0)
    momenta = [np.zeros_like(row) for row in (host, first_rows, second_rows)]
    mean = [np.zeros(c, np.float32) for c in (4, 8)]
    var = [np.ones(c, np.float32) for c in (4, 8)]
    steps = np.arange(_SAMPLES)
    labels = 5 * steps % _HOST.classes
    order = (7 * steps + 3) % _SAMPLES
    seeds = _seeds(first_rows, second_rows, momenta[1:])
    network = binding.NetworkStruct(
        values=host.ctypes.data,
        momentum=momenta[0].ctypes.data,
        mean=_pointers(mean),
        var=_pointers(var),
        seeds=seeds,
        width=_HOST_WIDTH,
    )
    rule = binding.RuleStruct(
        batch_size=_BATCH, host_lr=0.05, seed_lr=0.04, momentum=0.9, weight_decay=5e-4, max_grad_norm=1.0
    )
    split = binding.SplitStruct(images=images.ctypes.data, labels=labels.ctypes.data, samples=_SAMPLES, each=_EACH)
    tree = binding.TreeStruct(
        rows=(binding.Int * 2)(*_ROWS), parents=_pointers(_PARENTS), on=_pointers(_ON), real=_REAL
    )
    training_results = np.zeros(2)
    loss = np.zeros(1)
    correct_counts = np.zeros(_ROWS[-1], np.int64)
    workspaces = binding.Workspaces(library, _HOST, border=1)
    workspaces.train(rule, network, split, order, training_results)
    workspaces.measure(network, split, tree, correct_counts, loss)
    parts: list[NDArray[Any]] = [
        training_results,
        loss,
        correct_counts,
        *mean,
        *var,
        host,
        first_rows,
        second_rows,
        *momenta,
    ]
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def _seeds(
    first_rows: Floats32, second_rows: Floats32, momenta: Sequence[Floats32]
) -> ctypes.Array[binding.SeedStruct]:
    """Return the two seeds, whose parameters and momenta stay in these arrays."""
    return (binding.SeedStruct * 2)(
        binding.SeedStruct(
            values=first_rows.ctypes.data,
            momentum=momenta[0].ctypes.data,
            layers=_chain(_FIRST),
            n_layers=len(_FIRST),
            width=_FIRST_WIDTH,
            gate=81,
            gate_hidden=8,
            join=GATE,
            trained=1,
            alpha=0.6,
        ),
        binding.SeedStruct(
            values=second_rows.ctypes.data,
            momentum=momenta[1].ctypes.data,
            layers=_chain(_SECOND),
            n_layers=len(_SECOND),
            width=_SECOND_WIDTH,
            join=MULTIPLY,
            fossil=1,
            trained=1,
            alpha=0.8,
        ),
    )


def _chain(layers: tuple[tuple[int, int, int, int, tuple[int, ...]], ...]) -> ctypes.Array[LayerStruct]:
    return (LayerStruct * len(layers))(*(LayerStruct(*numbers, offsets) for *numbers, offsets in layers))


def _pointers(arrays: Iterable[NDArray[Any]]) -> ctypes.Array[ctypes.c_void_p]:
    return binding.pointers(array.ctypes.data for array in arrays)


def _numbers(draw: int, count: int, scale: float, centre: float) -> Floats32:
    """Return float32 numbers around `centre`, made of integers and therefore the same on every machine."""
    steps = np.arange(1, count + 1, dtype=np.int64) + 9973 * draw
    mixed_steps = (steps * steps * 40503 + steps * 48271) % 65521
    return (mixed_steps.astype(np.float32) / np.float32(32768) - np.float32(1)) * np.float32(scale) + np.float32(centre)
