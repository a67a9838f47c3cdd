"""Normalises observations, returns and advantages for the networks.

The running moments of observations and returns are fixed during a rollout, which is merged as a whole afterwards. They
are count-based (no decay) and in float64, so the order within a rollout cannot matter, and two runs with equal rollouts
agree.

No constant here is in reward units. If all rewards are multiplied by a power of two, which floating point does exactly,
normalised returns and advantages are therefore bit-identical. Settings may leave each normalisation out.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32


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
        """Merge rows [N, width]; N = 0 changes nothing."""
        if len(rows) == 0:
            return
        batch = rows.astype(np.float64)
        mean = batch.mean(axis=0)
        delta = mean - self.mean
        total = self.count + len(batch)
        squares_within = ((batch - mean) ** 2).sum(axis=0)
        squares_between = delta**2 * (self.count * len(batch) / total)
        squares = self._squares + squares_within + squares_between
        self.mean = self.mean + delta * (len(batch) / total)
        self.count = total
        self._set(squares)

    def state(self) -> dict[str, Floats]:
        """Return copies of the moments, float64."""
        return {"count": np.array(self.count), "mean": self.mean.copy(), "squares": self._squares.copy()}

    def load(self, state: dict[str, Any]) -> None:
        """Restore the result of `state`; ValueError if its width differs."""
        if state["mean"].shape != self.mean.shape:
            raise ValueError(f"moments of width {tuple(state['mean'].shape)}, expected {self.mean.shape}")
        self.count = float(state["count"])
        self.mean = np.asarray(state["mean"]).copy()
        self._set(np.asarray(state["squares"]).copy())


class ObservationNormaliser(RunningMoments):
    """Computes (x - mean) / std, clipped to ±`clip`; with the initial mean 0 and std 1 it only clips."""

    def __init__(self, width: int, std_floor: float, clip: float) -> None:
        super().__init__(width, std_floor)
        self._clip = clip

    def normalise(self, observation: Floats32) -> Floats32:
        """Return raw observations [..., width] normalised as the policy sees them."""
        scaled_observation = (observation - self.mean) / self.std
        return np.minimum(np.maximum(scaled_observation, -self._clip), self._clip).astype(np.float32)


class ReturnNormaliser:
    """Converts returns to the critic's units: minus their running mean, divided by their running standard deviation.

    Before the first merge, and as long as all returns have been equal, `std` is 0 and the scale is undefined. Every
    return then normalises to 0, and every critic value denormalises to the mean (0 before the first merge).

    With `units` "reward", the critic's units are those of rewards, and nothing is converted.
    """

    def __init__(self, units: Literal["running", "reward"] = "running") -> None:
        self.moments = RunningMoments(1, std_floor=0.0)
        self.units = units

    @property
    def mean(self) -> float:
        """The mean in reward units; 0 before the first merge."""
        return float(self.moments.mean[0])

    @property
    def std(self) -> float:
        """The SD in reward units; 0 before the first merge and while returns have differed only by rounding errors."""
        if self.moments.count == 0:
            return 0.0
        std = float(self.moments.std[0])
        if std <= rounding(max(abs(self.mean), std), self.moments.count):
            return 0.0
        return std

    def normalise(self, returns: Floats) -> Floats:
        """Convert from reward units to the critic's units."""
        if self.units == "reward":
            return returns
        std = self.std
        if std == 0.0:
            return np.zeros_like(returns)
        return (returns - self.mean) / std

    def denormalise(self, values: Floats) -> Floats:
        """Convert from the critic's units to reward units."""
        if self.units == "reward":
            return values
        return values * self.std + self.mean


def normalise_advantages(advantages: Floats, returns: Floats, valid_mask: Bools) -> tuple[Floats, float]:
    """Return advantages [T, E] scaled to mean 0 and SD 1 over the valid steps, and the SD that they had before.

    Both results are 0 if the advantages differ by no more than rounding errors, whose size is judged by the returns. No
    decision is then known to be better than another, and a division would scale the rounding errors up to size 1.
    """
    valid_advantages = advantages[valid_mask]
    std = float(valid_advantages.std())
    size = max(float(np.abs(valid_advantages).max()), float(np.abs(returns[valid_mask]).max()))
    if std <= rounding(size, valid_advantages.size):
        return np.zeros_like(advantages), 0.0
    return (advantages - valid_advantages.mean()) / std, std


def rounding(size: float, terms: float) -> float:
    """Return how far two float64 sums (or means) of `terms` numbers may differ because of rounding alone.

    `size`: a bound on the sum (or mean) of the magnitudes. An error is at most about `terms` times the unit roundoff,
    half of eps, times `size` (Higham 2002, Accuracy and Stability of Numerical Algorithms, section 4.2).
    """
    return terms * float(np.finfo(np.float64).eps) * size
