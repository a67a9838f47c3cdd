"""What networks see and learn in place of raw numbers: observations, returns and advantages, normalised.

Running moments of observations and returns stand still during a rollout and merge it as a whole afterwards.
Count-based (no decay), float64, so the order inside a rollout cannot matter and two runs with equal rollouts agree.

No constant here is in reward units. So rewards times a power of two, which floating point scales exactly, give
normalised returns and advantages that are the same to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32

OBSERVATION_CLIP = 10.0


class RunningMoments:
    """Mean and population standard deviation per column of all rows seen (Chan, Golub, LeVeque 1979)."""

    def __init__(self, width: int, std_floor: float) -> None:
        self._std_floor = std_floor
        self.count = 0.0  # of rows seen
        self.mean: Floats = np.zeros(width)  # 0 before the first merge
        self._set(np.zeros(width))

    def _set(self, squares: Floats) -> None:
        self._squares = squares  # sum of squared deviations from the mean
        self.std = np.ones_like(squares)  # at least the floor; 1 before the first merge
        if self.count:
            self.std = np.maximum(np.sqrt(squares / self.count), self._std_floor)

    def merge(self, rows: NDArray[np.floating[Any]]) -> None:
        """Take in rows [N, width]; nothing happens for N = 0."""
        if len(rows) == 0:
            return
        batch = rows.astype(np.float64)
        mean = batch.mean(axis=0)
        delta = mean - self.mean
        total = self.count + len(batch)
        squares = self._squares + ((batch - mean) ** 2).sum(axis=0) + delta**2 * (self.count * len(batch) / total)
        self.mean = self.mean + delta * (len(batch) / total)
        self.count = total
        self._set(squares)

    def state(self) -> dict[str, Floats]:
        """Copies, float64."""
        return {"count": np.array(self.count), "mean": self.mean.copy(), "squares": self._squares.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned; ValueError when the width is another one."""
        if state["mean"].shape != self.mean.shape:
            raise ValueError(f"moments of width {tuple(state['mean'].shape)}, expected {self.mean.shape}")
        self.count = float(state["count"])
        self.mean = np.asarray(state["mean"]).copy()
        self._set(np.asarray(state["squares"]).copy())


class ObservationNormaliser(RunningMoments):
    """(x - mean) / std, clipped to ±OBSERVATION_CLIP. Before the first merge it only clips: mean 0, std 1."""

    def normalise(self, observation: Floats32) -> Floats32:
        """What the policy sees of raw observations [..., width]."""
        scaled = (observation - self.mean) / self.std
        return np.minimum(np.maximum(scaled, -OBSERVATION_CLIP), OBSERVATION_CLIP).astype(np.float32)


class ReturnNormaliser:
    """The critic's units: returns minus their running mean, divided by their running standard deviation.

    While all returns so far were equal, and before the first merge, there is no such unit (`std` is 0): every return is
    0 for the critic, and whatever the critic says means the mean, which is 0 reward units before the first merge.
    """

    def __init__(self) -> None:
        self.moments = RunningMoments(1, std_floor=0.0)

    @property
    def mean(self) -> float:
        """In reward units; 0 before the first merge."""
        return float(self.moments.mean[0])

    @property
    def std(self) -> float:
        """In reward units; 0 before the first merge and while returns have differed by no more than rounding."""
        if self.moments.count == 0:
            return 0.0
        std = float(self.moments.std[0])
        return 0.0 if std <= rounding(max(abs(self.mean), std), self.moments.count) else std

    def normalise(self, returns: Floats) -> Floats:
        """Reward units to the critic's."""
        std = self.std
        return np.zeros_like(returns) if std == 0.0 else (returns - self.mean) / std

    def denormalise(self, values: Floats) -> Floats:
        """The critic's units to reward units."""
        return values * self.std + self.mean


def normalise_advantages(advantages: Floats, returns: Floats, valid: Bools) -> tuple[Floats, float]:
    """Advantages [T, E] with mean 0 and standard deviation 1 over the valid steps, and the deviation they had before.

    All of it is 0 where the advantages differ by no more than rounding, measured at the returns that they come from:
    no decision is known to be better than another, and a division would make the rounding one of size 1.
    """
    known = advantages[valid]
    std = float(known.std())
    size = max(float(np.abs(known).max()), float(np.abs(returns[valid]).max()))
    if std <= rounding(size, known.size):
        return np.zeros_like(advantages), 0.0
    return (advantages - known.mean()) / std, std


def rounding(size: float, terms: float) -> float:
    """How far apart numbers up to `size` may be that are equal but for their arithmetic, in float64 sums of `terms`.

    The error of such a sum is at most about `terms` times the unit roundoff, half of eps, of what it adds up (Higham
    2002, Accuracy and Stability of Numerical Algorithms, section 4.2).
    """
    return terms * float(np.finfo(np.float64).eps) * size
