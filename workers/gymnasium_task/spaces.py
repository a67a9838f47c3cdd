"""Gymnasium's spaces as a policy has them: flat observations, decisions by heads or continuous ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatdim, flatten
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Ints
from workers.environments import Decisions, Spaces

_STD_FLOOR = 1e-6  # of observations whose unit nobody knows


@dataclass(frozen=True)
class AllValid:
    """Masks of a task in which every choice is always valid."""

    sizes: tuple[int, ...]

    def mask(self, head: int, chosen: Ints) -> Bools:
        """Return ones, [E, size of head]."""
        return np.ones((len(chosen), self.sizes[head]), dtype=np.bool_)


class Codec:
    """Translates between the spaces of an environment and those of a policy; ValueError for spaces it cannot."""

    def __init__(self, observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> None:
        if not observations.is_np_flattenable:
            raise ValueError(f"observations {observations} have no fixed number of entries; a policy here needs one")
        self._observations, self._actions = observations, actions
        self._plain = isinstance(observations, gymnasium.spaces.Box)
        self.box = isinstance(actions, gymnasium.spaces.Box)
        sizes = () if self.box else _head_sizes(actions)
        count = flatdim(actions) if self.box else len(sizes)
        names = ("action",) if count == 1 else tuple(f"action_{index}" for index in range(count))
        self.spaces = Spaces(
            observation_width=flatdim(observations), head_names=names, head_sizes=sizes,
            observation_std_floor=_STD_FLOOR,
        )
        self.masks = AllValid(sizes)
        low, high = (actions.low, actions.high) if isinstance(actions, gymnasium.spaces.Box) else (0.0, 0.0)
        self.low: Floats = np.asarray(low, dtype=np.float64).ravel()  # [dimensions]
        self.high: Floats = np.asarray(high, dtype=np.float64).ravel()

    @property
    def width(self) -> int:
        """Number of random numbers of a decision: one per head or dimension."""
        return len(self.spaces.head_names)

    def flat(self, observation: Any) -> NDArray[np.float32]:
        """Return an observation as [width]: a copy, as an environment may write its next one into the same array.

        ValueError when it has another width than its space.
        """
        shown = observation if self._plain else flatten(self._observations, observation)
        found = np.array(shown, dtype=np.float32).ravel()
        if len(found) != self.spaces.observation_width:
            raise ValueError(f"it shows {len(found)} numbers, and observation_space is {self._observations}")
        return found

    def actions(self, decisions: Decisions) -> list[Any]:
        """Return what environments are given for decisions [E, heads or dimensions]; a Box's are clipped to it."""
        space = self._actions
        if isinstance(space, gymnasium.spaces.Box):
            return [row.reshape(space.shape).astype(space.dtype) for row in self.given(decisions)]
        if isinstance(space, gymnasium.spaces.Discrete):
            return [space.start + space.dtype.type(number) for number in decisions[:, 0].tolist()]
        start = space.start if isinstance(space, gymnasium.spaces.MultiDiscrete) else 0
        return [(decision + start).astype(space.dtype) for decision in decisions]

    def given(self, decisions: Decisions) -> NDArray[Any]:
        """Return decisions as facts have them: [E] of a Discrete space, else [E, heads or dimensions]."""
        if self.box:
            clipped: NDArray[Any] = np.clip(decisions, self.low, self.high)
            return clipped
        shifted: NDArray[Any] = decisions + np.asarray(getattr(self._actions, "start", 0))
        return shifted[:, 0] if isinstance(self._actions, gymnasium.spaces.Discrete) else shifted


def _head_sizes(actions: gymnasium.Space[Any]) -> tuple[int, ...]:
    if isinstance(actions, gymnasium.spaces.Discrete):
        return (int(actions.n),)
    if isinstance(actions, gymnasium.spaces.MultiDiscrete) and actions.nvec.ndim == 1:
        return tuple(int(size) for size in actions.nvec)
    if isinstance(actions, gymnasium.spaces.MultiBinary) and isinstance(actions.n, int):
        return (2,) * actions.n
    can = "Discrete, MultiDiscrete, MultiBinary and Box"
    raise ValueError(f"a policy here cannot choose actions {actions}; it can choose {can}")
