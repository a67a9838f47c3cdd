"""The 1,797 real 8x8 digit images shipped with the package, in fixed splits; see digits.txt."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from workers.datasets.split import splits_of
from workers.datasets.task import Splits

FILE = Path(__file__).with_name("digits.npz")
SIZES = (1024, 384, 389)
_MAX = 16.0  # a pixel counts the set bits of a 4x4 patch
_MEAN, _STD = 0.3053, 0.3760  # of all pixels, scaled to 0-1


def load(data_dir: str = "") -> Splits:
    """Load the splits of the shipped images, x [N, 1, 8, 8]; ValueError for a data_dir, which would be ignored."""
    if data_dir:
        raise ValueError(f"the digits ship with the package: nothing is read from data_dir {data_dir!r}; leave it out")
    with np.load(FILE) as file:
        images, labels = file["images"], file["labels"].astype(np.int64)
    x = ((images[:, None] / _MAX - _MEAN) / _STD).astype(np.float32)
    return splits_of(x, labels, SIZES, "digits")
