"""Generated oriented gratings, small and fast, for tests. A host of 1x1 convolutions cannot see orientation."""

from __future__ import annotations

import numpy as np

from workers.kinds.growth.datasets.generated import SampleDraws, refuse_folder
from workers.kinds.growth.datasets.stratified import splits_of
from workers.kinds.growth.datasets.task import HostSpec, Splits, Task

_SIZES = (256, 128, 128)
_SIDE = 8
_CLASSES = 4  # orientations of 0, 45, 90 and 135 degrees
_CYCLES = (1.5, 2.5)  # per image, drawn uniformly
_NOISE = 1.0  # uniform in ±_NOISE around a grating of amplitude 1


def load(data_dir: str = "") -> Splits:
    """Generate noisy sine gratings of random phase and frequency, x [N, 1, 8, 8]; ValueError if a data_dir is given."""
    refuse_folder("synthetic", data_dir)
    draws = SampleDraws("synthetic")
    total = sum(_SIZES)
    labels = np.arange(total) % _CLASSES
    noise = _NOISE * (2 * draws.uniform("noise", total, _SIDE, _SIDE) - 1)
    std = np.sqrt(1 / 2 + _NOISE**2 / 3)  # of a sine wave and of the uniform noise on it
    x = (draws.gratings(labels, _CLASSES, _CYCLES, _SIDE) + noise) / std
    return splits_of(x.astype(np.float32)[:, None], labels, _SIZES, "synthetic")


TASK = Task(
    name="synthetic",
    title="generated 8x8 gratings of four orientations, host of 1x1 convolutions",
    host=HostSpec(in_channels=1, base=4, levels=2, kernel=1, pools=2, classes=_CLASSES),
    slots=("early", "late"),
    image=(1, _SIDE, _SIDE),
    sizes=_SIZES,
    load=load,
)
