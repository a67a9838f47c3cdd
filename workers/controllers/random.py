"""Controller that is uniform over the valid choices, head after head: the baseline of an untrained policy."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import ControllerSettings
from workers.controller import Controller
from workers.facts import Floats, Ints
from workers.growth.rules.choice import choose
from workers.growth.rules.view import DecisionView


class Random(Controller):
    """Uniform controller; all randomness is in the given uniforms."""

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head], each head uniform over its mask given the heads before it."""
        decisions = np.zeros(uniforms.shape, dtype=np.int64)
        for head in range(uniforms.shape[1]):
            decisions[:, head] = choose(view.masks.mask(head, decisions[:, :head]), uniforms[:, head])
        return decisions


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Random:
    """Make the controller, which has no settings."""
    return Random()
