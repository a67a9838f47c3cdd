"""Controller that never grows: the baseline, which shows the accuracy of the bare host."""

from __future__ import annotations

from esper_ab.contracts.settings import ControllerSettings
from workers.arrays import Floats, Ints, int_zeros
from workers.environments import Controller
from workers.kinds.growth.rules.masks import DecisionView


class Wait(Controller[DecisionView]):
    """Controller that always waits. WAIT is 0 in every head and always valid."""

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return zeros [E, head]."""
        return int_zeros((len(view.alive), len(view.masks.sizes)))


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Wait:
    """Return the controller; it has no settings."""
    return Wait()
