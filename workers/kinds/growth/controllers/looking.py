"""A hand-written controller that inspects each host once and places its one seed according to the host's losses.

Written for the task `mixture`. After a few epochs without a seed it decides for each host:

- If the training loss is still near the loss of guessing, the host cannot see the classes, so it gets a convolution in
  the first slot.
- If the validation loss is above the training loss, there are few data, so the seed goes into the last slot, where it
  does least harm.
- Otherwise the seed goes into the middle slot.

The seed is advanced as soon as possible and kept. The thresholds were chosen on hosts of rng seed 171.
"""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import ControllerSettings
from workers.arrays import Floats, Ints, int_zeros
from workers.environments import Controller
from workers.kinds.growth import vocabulary
from workers.kinds.growth.rules.masks import DecisionView, follow
from workers.kinds.growth.vocabulary import HEADS, OP, SLOT, Op

LOOK_STEP = 3
BLIND_NATS = 1.25  # at or above this training loss nothing has been learned; guessing among four classes gives 1.39
FEW_NATS = 0.1  # validation loss above training loss
BLUEPRINTS = ("conv_heavy", "conv_light", "conv_small", "bottleneck", "depthwise")  # it uses the first enabled one

_BLEND = vocabulary.blend("sigmoid_add", 3, 1.0)  # in every germination


class Looking(Controller[DecisionView]):
    """Rule-based controller; `blueprint` is an index into the enabled blueprints."""

    def __init__(self, blueprint: int) -> None:
        self._blueprint = blueprint

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head] according to the rules; uses no randomness."""
        wishes = int_zeros((len(view.alive), len(HEADS)))
        present_mask = view.table.present
        if view.step >= LOOK_STEP:
            empty_mask = ~present_mask.any(axis=1)
            wishes[empty_mask, OP] = Op.GERMINATE
            wishes[empty_mask, SLOT] = _place(view)[empty_mask]
            wishes[empty_mask, vocabulary.BLUEPRINT] = self._blueprint
            for head, choice in _BLEND.items():
                wishes[empty_mask, head] = choice
        grown_mask = present_mask.any(axis=1)
        wishes[grown_mask, OP] = Op.ADVANCE
        wishes[grown_mask, SLOT] = present_mask.argmax(axis=1)[grown_mask]
        decisions, permitted_mask = follow(view.masks, wishes)
        decisions[~permitted_mask] = Op.WAIT
        return decisions


def _place(view: DecisionView) -> Ints:
    """Return the slot [E] indicated by the losses of a host without seeds."""
    signals = view.signals
    last_slot = len(view.slots) - 1
    blind = signals.train_loss > BLIND_NATS
    few = signals.val_loss - signals.train_loss > FEW_NATS
    middle = last_slot // 2 + last_slot % 2
    return np.where(blind, 0, np.where(few, last_slot, middle))


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Looking:
    """Return the controller with the first enabled blueprint of its list; ValueError if none is enabled."""
    enabled_blueprints = [blueprints.index(name) for name in BLUEPRINTS if name in blueprints]
    if not enabled_blueprints:
        raise ValueError(f"controller looking needs at least one of the blueprints {', '.join(BLUEPRINTS)}")
    return Looking(enabled_blueprints[0])
