"""A hand-written controller: germinate on a plateau, keep seeds that contribute, prune the others.

It grows one seed at a time, in the first empty slot in network order; after a fossil the next seed uses the next slot.
It finds the seed to act on by serial number, never by a remembered slot. Unlike the heuristic of the reference system
(docs/internals/rewards.md) it sees measured contributions, so it can fossilise. If the masks do not permit the
operation that the rules choose, it waits.
"""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import ControllerSettings
from workers.arrays import Bools, Floats, Ints, int_zeros
from workers.environments import Controller
from workers.kinds.growth import vocabulary
from workers.kinds.growth.rules.masks import DecisionView, follow
from workers.kinds.growth.rules.seeds import slot_of
from workers.kinds.growth.rules.tracker import summary_seed
from workers.kinds.growth.vocabulary import HEADS, OP, SLOT, Op, Stage

ROTATION = ("conv_light", "conv_heavy", "attention", "norm", "depthwise")
PLATEAU_EPOCHS = 3
MIN_STEP = 5
PRUNE_PATIENCE = 5  # epochs in a stage before a falling accuracy counts against the seed
PRUNE_DROP_POINTS = 2.0
FOSSILIZE_POINTS = 0.5
EMBARGO_STEPS = 5  # after a prune, in any slot
PENALTY_PER_PRUNE = 2.0
PENALTY_DECAY = 0.5  # per step
PENALTY_FORGOTTEN = 0.1
PENALTY_SKIP = 3.0
RANSOM_POINTS = 0.1  # contribution of a seed that the network depends on although accuracy fell since its germination

_BLEND = vocabulary.blend("sigmoid_add", 5, 1.0)  # in every germination


class Heuristic(Controller[DecisionView]):
    """Rule-based controller; `rotation` holds indices into the enabled blueprints."""

    def __init__(self, rotation: Ints) -> None:
        self._rotation = rotation
        self.begin_episode(0)

    def begin_episode(self, n_envs: int) -> None:
        """Reset penalties, embargo and rotation."""
        self._penalty: Floats = np.zeros((n_envs, len(self._rotation)))
        self._next = int_zeros(n_envs)  # index into the rotation
        self._last_prune: Ints = np.full(n_envs, -EMBARGO_STEPS, dtype=np.int64)  # step

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        """Return decisions [E, head] according to the rules; uses no randomness."""
        self._penalty *= PENALTY_DECAY
        self._penalty[self._penalty < PENALTY_FORGOTTEN] = 0.0
        live_mask = view.table.present & (view.table.stage != Stage.FOSSILIZED)
        place = self._place()
        wishes = int_zeros((len(view.alive), len(HEADS)))
        self._wish_germination(wishes, view, ~live_mask.any(axis=1), place)
        target = _target_slot(view, live_mask)
        wishes[target >= 0, OP] = _care(view, target)[target >= 0]
        wishes[target >= 0, SLOT] = target[target >= 0]
        decisions, permitted_mask = follow(view.masks, wishes)
        decisions[~permitted_mask] = Op.WAIT
        self._learn(view, decisions, place)
        return decisions

    def _place(self) -> Ints:
        """Return the rotation index [E] of the next blueprint: the first, from `_next` on, with penalty < PENALTY_SKIP.

        If there is no such blueprint, return the least penalised one.
        """
        size = len(self._rotation)
        order = (self._next[:, None] + np.arange(size)) % size  # [E, R]
        skipped_mask = np.take_along_axis(self._penalty, order, axis=1) >= PENALTY_SKIP
        first_blueprint = np.take_along_axis(order, skipped_mask.argmin(axis=1)[:, None], axis=1)[:, 0]
        return np.where(skipped_mask.all(axis=1), self._penalty.argmin(axis=1), first_blueprint)

    def _wish_germination(self, wishes: Ints, view: DecisionView, free_mask: Bools, place: Ints) -> None:
        """Set GERMINATE in `wishes` for hosts without a live seed (`free_mask` [E]), if stable but not improving."""
        signals = view.signals
        available_mask = view.table.available
        rested_mask = view.step - self._last_prune >= EMBARGO_STEPS
        stuck_mask = signals.stabilized & (signals.plateau_epochs >= PLATEAU_EPOCHS)
        now_mask = free_mask & rested_mask & stuck_mask & available_mask.any(axis=1) & (view.step >= MIN_STEP)
        wishes[now_mask, OP] = Op.GERMINATE
        wishes[now_mask, SLOT] = available_mask.argmax(axis=1)[now_mask]
        wishes[now_mask, vocabulary.BLUEPRINT] = self._rotation[place][now_mask]
        for head, choice in _BLEND.items():
            wishes[now_mask, head] = choice

    def _learn(self, view: DecisionView, decisions: Ints, place: Ints) -> None:
        """Update rotation, penalties and embargo from the executed decisions."""
        envs = np.arange(len(decisions))
        in_favour_mask = self._penalty[envs, place] < PENALTY_SKIP
        germinated_mask = (decisions[:, OP] == Op.GERMINATE) & in_favour_mask
        self._next = np.where(germinated_mask, (place + 1) % len(self._rotation), self._next)
        pruned = decisions[:, OP] == Op.PRUNE
        blueprint = view.table.blueprint[envs, decisions[:, SLOT]]
        self._penalty += PENALTY_PER_PRUNE * (pruned[:, None] & (blueprint[:, None] == self._rotation))
        self._last_prune = np.where(pruned, view.step, self._last_prune)


def _target_slot(view: DecisionView, live_mask: Bools) -> Ints:
    """Return the slot [E] of the seed to act on, found by serial number; -1 if there is none."""
    table = view.table
    chosen_slot = summary_seed(table, live_mask)
    serial = np.where(chosen_slot >= 0, table.serial[np.arange(len(chosen_slot)), chosen_slot], -1)
    return slot_of(table, serial)


def _care(view: DecisionView, slot: Ints) -> Ints:
    """Return the op [E] for the live seed in `slot` [E]; meaningless where there is no seed."""
    table = view.table
    envs = np.arange(len(slot))
    stage = table.stage[envs, slot]
    contribution = table.contribution[envs, slot]
    fallen = view.signals.val_acc - table.acc_at_stage_start[envs, slot] < -PRUNE_DROP_POINTS
    failing_mask = np.isin(stage, (Stage.TRAINING, Stage.BLENDING)) & fallen
    failing_mask &= table.epochs_in_stage[envs, slot] >= PRUNE_PATIENCE
    ransom = (contribution > RANSOM_POINTS) & (view.signals.val_acc < table.acc_at_germination[envs, slot])
    keep_mask = (contribution > FOSSILIZE_POINTS) & ~ransom
    judged_op = np.where(np.isnan(contribution), Op.WAIT, np.where(keep_mask, Op.FOSSILIZE, Op.PRUNE))
    return np.where(stage == Stage.HOLDING, judged_op, np.where(failing_mask, Op.PRUNE, Op.ADVANCE))


def make(settings: ControllerSettings, slots: tuple[str, ...], blueprints: tuple[str, ...]) -> Heuristic:
    """Return the controller, with its rotation restricted to the enabled blueprints; ValueError if none is left."""
    rotation = [blueprints.index(name) for name in ROTATION if name in blueprints]
    if not rotation:
        raise ValueError(f"controller heuristic needs at least one of the blueprints {', '.join(ROTATION)}")
    return Heuristic(np.array(rotation, dtype=np.int64))
