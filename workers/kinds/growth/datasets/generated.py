"""Samples of generated data, drawn from addresses, so that they are the same everywhere."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, Ints


class SampleDraws:
    """Uniform numbers made from raw Philox words, which are the same in every numpy version."""

    def __init__(self, *address: str) -> None:
        self._path = RngPath(0) / "task"
        for part in address:
            self._path /= part

    def uniform(self, purpose: str, *shape: int) -> Floats:
        """Return numbers in [0, 1)."""
        words = (self._path / purpose).generator().bit_generator.random_raw(int(np.prod(shape)))
        return np.ldexp((np.asarray(words, np.uint64) >> np.uint64(11)).astype(np.float64), -53).reshape(shape)

    def gratings(self, labels: Ints, classes: int, cycles: tuple[float, float], side: int) -> Floats:
        """Return sine gratings [n, side, side] whose orientation is the label; `cycles`: fewest and most per image."""
        n = len(labels)
        angle = labels * (np.pi / classes)
        frequency = cycles[0] + (cycles[1] - cycles[0]) * self.uniform("cycles", n)
        phase = 2 * np.pi * self.uniform("phase", n)
        row, column = np.mgrid[:side, :side] / side
        distance_along = np.cos(angle)[:, None, None] * column + np.sin(angle)[:, None, None] * row
        waves: Floats = np.sin(2 * np.pi * frequency[:, None, None] * distance_along + phase[:, None, None])
        return waves


def refuse_folder(task: str, data_dir: str) -> None:
    """Raise ValueError if a data folder is given for generated data, because it would be ignored."""
    if data_dir:
        raise ValueError(f"{task} is generated; data_dir {data_dir!r} would be ignored, so leave it out")
