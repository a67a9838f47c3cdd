"""Generated oriented gratings: small and fast, for tests; a host of 1x1 convolutions sees no orientation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.rng import RngPath
from workers.datasets.behaviour import growing
from workers.datasets.split import stratified
from workers.datasets.task import HostSpec, Split, Splits, Task

_SIZES = (256, 128, 128)
_SIDE = 8
_CLASSES = 4  # orientations of 0, 45, 90 and 135 degrees
_CYCLES = (1.5, 2.5)  # per image, drawn uniformly
_NOISE = 1.0  # uniform in ±_NOISE around a grating of amplitude 1


def _uniforms(shape: tuple[int, ...], purpose: str) -> NDArray[np.float64]:
    """Return numbers in [0, 1) from raw Philox words, which are the same in every numpy version."""
    words = (RngPath(0) / "task" / "synthetic" / purpose).generator().bit_generator.random_raw(int(np.prod(shape)))
    return np.ldexp((np.asarray(words, np.uint64) >> np.uint64(11)).astype(np.float64), -53).reshape(shape)


def load(data_dir: str = "") -> Splits:
    """Generate noisy sine gratings of random phase and frequency, x [N, 1, 8, 8]; ValueError for a data_dir."""
    if data_dir:
        raise ValueError(f"synthetic is generated: nothing is read from data_dir {data_dir!r}; leave it out")
    total = sum(_SIZES)
    labels = np.arange(total) % _CLASSES
    angle = labels * (np.pi / _CLASSES)
    cycles = _CYCLES[0] + (_CYCLES[1] - _CYCLES[0]) * _uniforms((total,), "cycles")
    phase = 2 * np.pi * _uniforms((total,), "phase")
    row, column = np.mgrid[:_SIDE, :_SIDE] / _SIDE
    along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row  # [N, 8, 8]
    grating = np.sin(2 * np.pi * cycles[:, None, None] * along + phase[:, None, None])
    noise = _NOISE * (2 * _uniforms((total, _SIDE, _SIDE), "noise") - 1)
    std = np.sqrt(1 / 2 + _NOISE**2 / 3)  # of a sine wave and of the uniform noise on it
    x = ((grating + noise) / std).astype(np.float32)[:, None]
    train, validation, test = (Split(x=x[rows], y=labels[rows]) for rows in stratified(labels, _SIZES, "synthetic"))
    return Splits(train=train, validation=validation, test=test)


TASK = Task(
    name="synthetic",
    title="generated 8x8 gratings of four orientations, host of 1x1 convolutions",
    host=HostSpec(in_channels=1, base=4, levels=2, kernel=1, pools=2, classes=_CLASSES),
    slots=("early", "late"),
    image=(1, _SIDE, _SIDE),
    sizes=_SIZES,
    load=load,
    behaviours=growing,
)
