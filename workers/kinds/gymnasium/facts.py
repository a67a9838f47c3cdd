"""The inputs of users' functions: a reward gets the facts of one step, and an outcome gets one episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32, Ints, ReadOnlyArrays


@dataclass(frozen=True, kw_only=True)
class GymFacts(ReadOnlyArrays):
    """Complete input of a reward: one step of E environments.

    Where `stepped` is False, the environment had already ended: its row is all zeros, and its `info` is from its last
    step.

    Facts are read-only, because all rewards of a step, the policy and the next observation share them.
    """

    observation: Floats32  # [E, width] flat, before the step
    action: NDArray[Any]  # [E] for a Discrete space, else [E, …] with the space's shape; as given to the environment
    next_observation: Floats32  # [E, width] after the step, before any reset
    env_reward: Floats  # [E] the environment's own reward
    terminated: Bools  # [E]
    truncated: Bools  # [E] by the environment's own limit or the run's
    step: Ints  # [E] of the environment's episode, from 1
    info: tuple[Mapping[str, Any], ...]  # one per environment, as returned; read-only
    stepped: Bools  # [E] False: the episode ended before this step, and its reward is ignored

    def of(self, stepped_mask: Bools) -> GymFacts:
        """Return the facts with every array zeroed in the rows of environments that are not in `stepped_mask` [E]."""
        if stepped_mask.all():
            return self
        zeroed_arrays: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                rows = stepped_mask.reshape(-1, *[1] * (value.ndim - 1))
                zeroed_arrays[name] = np.where(rows, value, np.zeros_like(value))
        return replace(self, **zeroed_arrays)


class GymStep:
    """One step, as passed to reward functions. Its facts are built at the first access."""

    def __init__(self, env_reward: Floats, build: Callable[[], GymFacts]) -> None:
        """Take the environments' own rewards [E] and `build`, which builds the facts.

        `build` must be called before the next step.
        """
        self.env_reward = env_reward
        self._build = build

    @cached_property
    def facts(self) -> GymFacts:
        """The facts of this step, shared by all its readers."""
        return self._build()


@dataclass(kw_only=True)
class GymEpisode:
    """Complete input of an outcome: one environment's episode of T steps."""

    observations: list[Floats32] = field(default_factory=list)  # T + 1, flat; empty if no function may read them
    actions: list[Any] = field(default_factory=list)  # T, as given to the environment; empty if observations are
    env_rewards: list[float] = field(default_factory=list)  # T
    info: Mapping[str, Any] = field(default_factory=dict)  # of the last step
    terminated: bool = False
    truncated: bool = False
