"""Never grow: the floor. What the host reaches alone."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import ControllerSettings
from workers.facts import Floats, Ints
from workers.growth.rules.view import DecisionView


class Wait:
    """WAIT is 0 in every head, and always permitted."""

    learns = False

    def begin_episode(self, n_envs: int) -> None:
        """Nothing to forget."""

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """[E, head] zeros."""
        return np.zeros((len(view.alive), len(view.masks.sizes)), dtype=np.int64)


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Wait:
    """No settings."""
    return Wait()
