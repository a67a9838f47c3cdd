"""Base of controllers: of every entry of workers/controllers, and of the policy that learns.

An entry is a file with `def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) ->
Controller`, of a subclass; ValueError, in one line, for settings it does not support.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from workers.arrays import Bools, Floats
from workers.environments import Cut, Decisions, Seen

S = TypeVar("S", bound=Seen, contravariant=True)


class Controller(ABC, Generic[S]):
    """Decides for all environments of a run at once; draws no random number of its own."""

    def begin_episode(self, n_envs: int) -> None:
        """Reset all state of earlier episodes."""

    @abstractmethod
    def decide(self, view: S, uniforms: Floats) -> Decisions:
        """Return one decision per environment, [E, head], valid under `view.masks`; `uniforms` [E, head] in [0, 1)."""

    def exclude(self, envs: Bools) -> None:
        """Take which environments [E] ended before their first decision; what is decided for them has no effect."""

    def reward(self, rewards: Floats, done: Bools, cut: Cut | None = None) -> None:
        """Take the rewards [E] of the last decision, which environments [E] ended with it, and what cut them off."""
