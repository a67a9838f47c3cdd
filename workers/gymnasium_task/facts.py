"""What functions of a user's own may know: of a step, for rewards; of an episode, for outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.arrays import Bools, Floats, Floats32, Ints, ReadOnlyArrays


@dataclass(frozen=True, kw_only=True)
class GymFacts(ReadOnlyArrays):
    """Complete input of a reward: one step of E environments side by side.

    An environment that has ended is not `stepped`: its row is zeros, and its `info` that of its last step.

    Facts are read only: all rewards of a step, the policy and the next observation share them.
    """

    observation: Floats32  # [E, width] flat, before the step
    action: NDArray[Any]  # [E] of a Discrete space, else [E, …] in its shape; what the environment was given
    next_observation: Floats32  # [E, width] after the step, before any reset
    env_reward: Floats  # [E] the environment's own reward
    terminated: Bools  # [E]
    truncated: Bools  # [E] by the environment's own limit or that of the run
    step: Ints  # [E] of the environment's episode, from 1
    info: tuple[Mapping[str, Any], ...]  # E of them, what the environment returned; read only, too
    stepped: Bools  # [E] False: the episode has ended before this step, and what a reward returns for it is ignored

    def of(self, stepped: Bools) -> GymFacts:
        """Return the facts of a step in which only the environments `stepped` are still alive."""
        if stepped.all():
            return self
        rows: dict[str, Any] = {
            name: np.where(stepped.reshape(-1, *[1] * (value.ndim - 1)), value, np.zeros_like(value))
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **rows)


@dataclass(kw_only=True)
class GymEpisode:
    """Complete input of an outcome: one environment's episode of T steps."""

    observations: list[Floats32] = field(default_factory=list)  # T + 1, flat; none if nobody may read them
    actions: list[Any] = field(default_factory=list)  # T, as the environment was given them
    env_rewards: list[float] = field(default_factory=list)  # T
    info: Mapping[str, Any] = field(default_factory=dict)  # of the last step
    terminated: bool = False
    truncated: bool = False
