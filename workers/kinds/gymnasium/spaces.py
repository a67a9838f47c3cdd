"""Converts Gymnasium's spaces to a policy's spaces: flat observations, and either heads or continuous decisions."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces.utils import flatdim, flatten
from numpy.typing import NDArray

from workers.arrays import Floats
from workers.environments import Decisions, Spaces

_STD_FLOOR = 1e-6  # of observations, whose units are unknown
_LARGEST = 1 << 24
_INTEGERS = "iub"  # kinds of dtype
_FLOAT32 = np.dtype(np.float32)


class Codec:
    """Translates between the spaces of an environment and those of a policy; ValueError for an unsupported space."""

    def __init__(self, observations: gymnasium.Space[Any], actions: gymnasium.Space[Any]) -> None:
        if not observations.is_np_flattenable:
            raise ValueError(f"observations {observations} have no fixed number of entries; a policy here needs one")
        self._observations = observations
        self._actions = actions
        self._plain = isinstance(observations, gymnasium.spaces.Box)
        self.box = isinstance(actions, gymnasium.spaces.Box)
        sizes: tuple[int, ...] = ()
        if self.box:
            count = flatdim(actions)
        else:
            sizes = _head_sizes(actions)
            count = len(sizes)
        if (largest_size := max(flatdim(observations), count, *sizes)) > _LARGEST:
            raise ValueError(
                f"{largest_size} entries or choices of a space are too many for a policy here: at most {_LARGEST}"
            )
        names = ("action",) if count == 1 else tuple(f"action_{index}" for index in range(count))
        self.spaces = Spaces(
            observation_width=flatdim(observations),
            head_names=names,
            head_sizes=sizes,
            observation_std_floor=_STD_FLOOR,
        )
        self._first = np.ravel(getattr(actions, "start", 0))  # choice of every head
        self.low: Floats = np.zeros(1)  # [dimensions] of a box, infinite where it has no bound; else one 0
        self.high: Floats = np.zeros(1)
        self.integers = False  # a box of whole numbers
        if isinstance(actions, gymnasium.spaces.Box):
            self.integers = actions.dtype.kind in _INTEGERS
            self._least = _inside(actions.low, is_lower=True)
            self._most = _inside(actions.high, is_lower=False)
            self.low = np.where(actions.bounded_below.ravel(), self._least, -np.inf)
            self.high = np.where(actions.bounded_above.ravel(), self._most, np.inf)

    @property
    def width(self) -> int:
        """The number of random numbers per decision: one per head or dimension."""
        return len(self.spaces.head_names)

    @property
    def bounds(self) -> tuple[tuple[float, float] | None, ...]:
        """The bounds of a box by dimension, with None where either bound is infinite; empty for every other space."""
        if not self.box:
            return ()
        bound_pairs = zip(self.low.tolist(), self.high.tolist(), strict=True)
        return tuple(pair if np.isfinite(pair).all() else None for pair in bound_pairs)

    def flat(self, observation: Any) -> NDArray[Any]:
        """Return an observation [width] to be copied to float32; the result may be a view of the environment's array.

        Raises ValueError if the width differs from the space's, or if a number is beyond the range of float32.
        """
        if (
            self._plain
            and type(observation) is np.ndarray
            and observation.size == self.spaces.observation_width
            and (observation.dtype == _FLOAT32 or observation.dtype.kind in _INTEGERS)
        ):  # the usual case, with nothing to check
            return observation.ravel()
        try:
            with np.errstate(over="raise"):
                flat_observation = observation if self._plain else flatten(self._observations, observation)
                numbers = np.array(flat_observation, dtype=np.float32).ravel()
        except FloatingPointError:
            largest_float = np.finfo(np.float32).max
            raise ValueError(
                f"it shows a number beyond float32 ({largest_float:.1e} at most), in which a policy sees it; scale it"
            ) from None
        if len(numbers) != self.spaces.observation_width:
            raise ValueError(f"it shows {len(numbers)} numbers, and observation_space is {self._observations}")
        return numbers

    def actions(self, decisions: Decisions) -> list[Any]:
        """Return an action per environment for decisions [E, heads or dimensions]; environments may modify theirs."""
        given_actions = self.given(decisions).astype(self._actions.dtype, copy=False)
        if given_actions.ndim > 1 or isinstance(self._actions, gymnasium.spaces.Discrete):
            return list(given_actions)
        return [np.array(action) for action in given_actions]

    def given(self, decisions: Decisions) -> NDArray[Any]:
        """Return the actions as recorded in facts: [E] for a Discrete space, else [E, …] with the shape of the space.

        Actions for a Box are clipped to its bounds, rounded if it holds integers, and cast to its type.
        """
        shape = (len(decisions), *(self._actions.shape or ()))
        if self.box:
            clipped_decisions: NDArray[Any] = np.minimum(np.maximum(decisions, self._least), self._most)
            if self.integers:
                clipped_decisions = np.rint(clipped_decisions)
            return clipped_decisions.astype(self._actions.dtype).reshape(shape)
        shifted_decisions: NDArray[Any] = decisions + self._first
        return shifted_decisions.reshape(shape)


def _inside(bounds: NDArray[Any], *, is_lower: bool) -> Floats:
    """Return bounds as float64 [dimensions]; a 64-bit integer that float64 cannot represent is rounded inwards."""
    rounded_bounds: Floats = bounds.astype(np.float64).ravel()
    if bounds.dtype.kind not in _INTEGERS:
        return rounded_bounds
    exact_pairs = zip(
        rounded_bounds.tolist(), bounds.ravel().tolist(), strict=True
    )  # numbers of Python compare exactly
    if is_lower:
        outside_flags = [number < bound for number, bound in exact_pairs]
        direction = np.inf
    else:
        outside_flags = [number > bound for number, bound in exact_pairs]
        direction = -np.inf
    return np.where(outside_flags, np.nextafter(rounded_bounds, direction), rounded_bounds)


def _head_sizes(actions: gymnasium.Space[Any]) -> tuple[int, ...]:
    if isinstance(actions, gymnasium.spaces.Discrete):
        return (int(actions.n),)
    if isinstance(actions, gymnasium.spaces.MultiDiscrete):
        return tuple(actions.nvec.ravel().tolist())
    if isinstance(actions, gymnasium.spaces.MultiBinary):
        return (2,) * flatdim(actions)
    possible_spaces = "Discrete, MultiDiscrete, MultiBinary and Box"
    raise ValueError(f"a policy here cannot choose actions {actions}; it can choose {possible_spaces}")
