"""Real 8x8 digits with a host of 1x1 convolutions, which sees no shapes until a seed with a larger kernel is grown."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from workers.kinds.growth.datasets.stratified import splits_of
from workers.kinds.growth.datasets.task import HostSpec, Splits, Task

_FILE = Path(__file__).parents[1] / "datasets" / "digits.npz"
_SIZES = (1024, 384, 389)
_MAX = 16.0  # a pixel is the number of set bits in a 4x4 patch
# Of all pixels, scaled to 0-1.
_MEAN = 0.3053
_STD = 0.3760


def load(data_dir: str = "") -> Splits:
    """Load the splits of the shipped images, x [N, 1, 8, 8]; ValueError for a data_dir, which would have no effect."""
    if data_dir:
        raise ValueError(f"the digits ship with the package; data_dir {data_dir!r} would be ignored, so leave it out")
    with np.load(_FILE) as file:
        images = file["images"]
        labels = file["labels"].astype(np.int64)
    x = ((images[:, None] / _MAX - _MEAN) / _STD).astype(np.float32)
    return splits_of(x, labels, _SIZES, "digits")


TASK = Task(
    name="digits",
    title="UCI handwritten digits, 8x8, host of 1x1 convolutions",
    host=HostSpec(in_channels=1, base=8, levels=3, kernel=1, pools=3, classes=10),
    slots=("early", "mid", "late"),
    image=(1, 8, 8),
    sizes=_SIZES,
    load=load,
)
