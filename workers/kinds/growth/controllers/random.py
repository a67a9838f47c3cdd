"""Controller that samples uniformly from the valid choices of each head: the untrained-policy baseline."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import ControllerSettings
from workers.arrays import Bools, Floats, Ints, int_zeros
from workers.environments import Controller
from workers.kinds.growth.rules.masks import DecisionView


def choose(mask: Bools, uniforms: Floats) -> Ints:
    """Sample uniformly from the True entries of `mask` [E, K] by inverse CDF at `uniforms` [E]; 0 if a row has none."""
    count = mask.sum(axis=1)
    rank = np.minimum((uniforms * count).astype(np.int64), count - 1)
    return np.asarray((mask.cumsum(axis=1) > rank[:, None]).argmax(axis=1))


class Random(Controller[DecisionView]):
    """Uniform controller; all randomness is in the given uniforms."""

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head], each head uniform over its mask given the heads before it."""
        decisions = int_zeros(uniforms.shape)
        for head in range(uniforms.shape[1]):
            decisions[:, head] = choose(view.masks.mask(head, decisions[:, :head]), uniforms[:, head])
        return decisions


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Random:
    """Return the controller; it has no settings."""
    return Random()
