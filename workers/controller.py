"""Base of controllers: of every entry of workers/controllers, and of the policy that learns.

An entry is a file with `def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) ->
Controller`, of a subclass; ValueError, in one line, for settings it does not support.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from workers.facts import Bools, Floats, Ints
from workers.growth.rules.view import DecisionView


class Controller(ABC):
    """Decides for all environments of a run at once; draws no random number of its own."""

    def begin_episode(self, n_envs: int) -> None:
        """Reset all state of earlier episodes."""

    @abstractmethod
    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return one decision per environment, [E, head], valid under `view.masks`; `uniforms` [E, head] in [0, 1)."""

    def exclude(self, envs: Bools) -> None:
        """Take which environments [E] ended before their first decision; their masks allow WAIT alone."""

    def reward(self, rewards: Floats, done: Bools) -> None:
        """Take the rewards [E] of the last decision, and which environments [E] ended with it."""
