"""Protocol of controllers: of every entry of workers/controllers, and of the policies that learn.

An entry is a file with `def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) ->
Controller`; ValueError, in one line, for settings it does not support.
"""

from __future__ import annotations

from typing import Protocol

from workers.facts import Floats, Ints
from workers.growth.rules.view import DecisionView


class Controller(Protocol):
    """Decides for all environments of a run at once; draws no random number of its own."""

    learns: bool

    def begin_episode(self, n_envs: int) -> None:
        """Reset all state of earlier episodes."""

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return one decision per environment, [E, head], valid under `view.masks`; `uniforms` [E, head] in [0, 1)."""
