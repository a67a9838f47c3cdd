"""Exact masks of every decision head, given the choices of earlier heads, and the rules behind them.

Quality gates say when a seed may advance or fossilise. Permissive gates require only the preconditions of the next
stage; strict gates also require quality (but no gradient ratio before BLENDING, because none is measured).
`valid_operations` is the one predicate behind both masks and execution. A mask row without any True means that the
operation does not use the head; the head's choice is then 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from workers.arrays import Bools, Floats, Floats32, Ints, all_false, all_true
from workers.kinds.growth.rules.seeds import HOLD, SeedTable
from workers.kinds.growth.rules.tracker import Signals
from workers.kinds.growth.vocabulary import (
    ALPHA_CURVE,
    ALPHA_SPEED,
    ALPHA_TARGET,
    ALPHA_TARGETS,
    BLENDING,
    BLUEPRINT,
    FOSSILIZED,
    GERMINATE,
    GERMINATED,
    HEADS,
    HOLDING,
    OP,
    PRUNE,
    SET_ALPHA_TARGET,
    SLOT,
    SPEEDS,
    STYLE,
    STYLES,
    TEMPO,
    TRAINING,
    WAIT,
    Op,
    head_sizes,
)

GateMode = Literal["permissive", "strict"]
CONTRIBUTING_POINTS = 1.0  # contribution when fossilised from which a fossil counts as contributing
_BLEND_EPOCHS = {"permissive": 1, "strict": 3}  # in TRAINING
_HOLD_EPOCHS = {"permissive": 0, "strict": 3}  # in BLENDING
_BLEND_IMPROVEMENT_POINTS = 0.5
_FULL = 1.0 - 1e-6


def may_blend(table: SeedTable, gates: GateMode, val_acc: Floats) -> Bools:
    """Return where TRAINING -> BLENDING is permitted, [E, S]; `val_acc` [E]: last validation accuracy, percent."""
    passed_mask = (table.stage == TRAINING) & (table.epochs_in_stage >= _BLEND_EPOCHS[gates])
    if gates == "strict":
        passed_mask &= val_acc[:, None] - table.acc_at_stage_start >= _BLEND_IMPROVEMENT_POINTS
    return np.asarray(passed_mask)


def may_hold(table: SeedTable, gates: GateMode) -> Bools:
    """Return where BLENDING -> HOLDING is permitted, [E, S]: alpha has reached its target 1.

    Strict gates also require 3 epochs in BLENDING.
    """
    full_mask = (table.alpha_mode == HOLD) & (table.alpha_target >= _FULL) & (table.alpha >= _FULL)
    return np.asarray((table.stage == BLENDING) & full_mask & (table.epochs_in_stage >= _HOLD_EPOCHS[gates]))


def may_fossilize(table: SeedTable, gates: GateMode) -> Bools:
    """Return where HOLDING -> FOSSILIZED is permitted, [E, S]: a contribution was measured in this seed's life.

    Strict gates also require a contribution of at least CONTRIBUTING_POINTS.
    """
    least_contribution = CONTRIBUTING_POINTS if gates == "strict" else -np.inf
    # A contribution that was never measured is NaN, and NaN compares False.
    return np.asarray((table.stage == HOLDING) & (table.contribution >= least_contribution))


MIN_PRUNE_AGE = 1  # validations
_ALGORITHMS = np.array([int(algorithm) for _, _, algorithm in STYLES])
_TARGETS = np.array(ALPHA_TARGETS)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Settings of a run's lifecycle."""

    steps: int  # decisions per episode
    gates: GateMode
    max_seeds: int  # live and fossilised seeds per environment; 0: as many as slots


def seed_limit(rules: Rules, n_slots: int) -> int:
    """Return the number of seeds, live and fossilised, that one environment may hold."""
    if rules.max_seeds == 0:
        return n_slots
    return min(rules.max_seeds, n_slots)


def rampable(table: SeedTable) -> Bools:
    """Return [E, S], True where alpha affects the forward pass and is at rest, so that a ramp can start."""
    open_mask = (table.stage == BLENDING) | (table.stage == HOLDING)
    return np.asarray(open_mask & (table.alpha_mode == HOLD))


def valid_operations(table: SeedTable, rules: Rules, val_acc: Floats, alive_mask: Bools, step: int) -> Bools:
    """Return [E, op, S], True where the operation is valid on the slot.

    WAIT is always valid but has no slot, so its entries are all False. On the last step only FOSSILIZE can still count:
    the effect of other operations would not be measured. `val_acc`, `alive_mask`: [E].
    """
    valid_ops = all_false((table.stage.shape[0], len(Op), table.stage.shape[1]))
    valid_ops[:, Op.FOSSILIZE] = may_fossilize(table, rules.gates)
    if step < rules.steps:
        present_mask = table.present
        room = present_mask.sum(axis=1) < seed_limit(rules, present_mask.shape[1])
        resting = table.alpha_mode == HOLD
        valid_ops[:, Op.GERMINATE] = table.available & room[:, None]
        valid_ops[:, Op.SET_ALPHA_TARGET] = rampable(table)
        valid_ops[:, Op.PRUNE] = present_mask & (table.stage != FOSSILIZED) & resting & (table.age >= MIN_PRUNE_AGE)
        may_train = table.stage == GERMINATED
        valid_ops[:, Op.ADVANCE] = may_train | may_blend(table, rules.gates, val_acc) | may_hold(table, rules.gates)
    return valid_ops & alive_mask[:, None, None]


_INSTANT = SPEEDS.index(0)


class DecisionMasks:
    """Masks of one step, [E, size(head)] per head: a snapshot that later changes of the table do not affect."""

    def __init__(self, table: SeedTable, valid_ops: Bools, n_blueprints: int) -> None:
        self.valid = valid_ops  # [E, op, S]
        self.sizes = head_sizes(table.stage.shape[1], n_blueprints)  # choices of each head, in the order of HEADS
        self._rampable = rampable(table)  # [E, S]
        same_algorithm = table.algorithm[:, :, None] == _ALGORITHMS  # [E, S, style]
        same_target = table.alpha_target[:, :, None] == _TARGETS  # [E, S, target]
        # [E, S, style, target] where the pair would change the seed's algorithm or its alpha target
        self._retargets = ~(same_algorithm[:, :, :, None] & same_target[:, :, None, :])
        self._alpha_target = table.alpha_target.copy()  # [E, S]
        self._rows = np.arange(table.stage.shape[0])

    def mask(self, head: int, choices: Ints) -> Bools:
        """Return the mask of `head` [E, size(head)], given the choices `choices` [E, head] of all earlier heads."""
        if choices.shape[1] != head:
            raise ValueError(f"the mask of head {HEADS[head]} needs {head} earlier choices, but got {choices.shape[1]}")
        if head == OP:
            ops: Bools = np.asarray(self.valid.any(axis=2))
            ops[:, WAIT] = True
            return ops
        if head == SLOT:
            return self.valid[self._rows, choices[:, OP]]
        if head in (STYLE, ALPHA_TARGET):
            pairs = self._retargets[self._rows, choices[:, SLOT]]  # [E, style, target]
            if head == STYLE:
                allowed_mask = pairs.any(axis=2)
            else:
                allowed_mask = pairs[self._rows, choices[:, STYLE]]
            retarget = choices[:, OP] == SET_ALPHA_TARGET
            return np.asarray(self._germinates(choices)[:, None] | (retarget[:, None] & allowed_mask))
        if head in (BLUEPRINT, TEMPO):
            used_mask = self._germinates(choices)
        elif head == ALPHA_SPEED:
            used_mask = self._ramps(choices)
        else:
            used_mask = self._bends(choices)
        return np.repeat(used_mask[:, None], self.sizes[head], axis=1)

    def permits(self, decisions: Ints) -> Bools:
        """Return [E], True where the masks allow every head of `decisions` [E, head] and unused heads are 0."""
        range_mask = np.asarray(((decisions >= 0) & (decisions < np.array(self.sizes))).all(axis=1))
        choices = np.where(range_mask[:, None], decisions, 0)
        op = choices[:, OP]
        slot = choices[:, SLOT]
        waits = op == WAIT
        germinates = self._germinates(choices)
        retarget = op == SET_ALPHA_TARGET
        pair = self._retargets[self._rows, slot, choices[:, STYLE], choices[:, ALPHA_TARGET]]
        possible_mask = waits | (self.valid[self._rows, op, slot] & (pair | ~retarget))
        # Otherwise a used head may take any value in its range, and an unused one must be 0.
        used_mask = np.empty(choices.shape, dtype=np.bool_)
        used_mask[:, OP] = True
        used_mask[:, SLOT] = ~waits
        used_mask[:, BLUEPRINT] = used_mask[:, TEMPO] = germinates
        used_mask[:, STYLE] = used_mask[:, ALPHA_TARGET] = germinates | retarget
        used_mask[:, ALPHA_SPEED] = self._ramps(choices)
        used_mask[:, ALPHA_CURVE] = self._bends(choices)
        return np.asarray(range_mask & possible_mask & (used_mask | (choices == 0)).all(axis=1))

    def _germinates(self, choices: Ints) -> Bools:
        return np.asarray(choices[:, OP] == GERMINATE)

    def _ramps(self, choices: Ints) -> Bools:
        """Return where the speed head is used [E]: only where alpha would change."""
        slot = choices[:, SLOT]
        target = _TARGETS[choices[:, ALPHA_TARGET]]
        moves = (choices[:, OP] == SET_ALPHA_TARGET) & (target != self._alpha_target[self._rows, slot])
        blends_out = (choices[:, OP] == PRUNE) & self._rampable[self._rows, slot]
        return np.asarray(moves | blends_out)

    def _bends(self, choices: Ints) -> Bools:
        return np.asarray(self._ramps(choices) & (choices[:, ALPHA_SPEED] != _INSTANT))


@dataclass(frozen=True, kw_only=True)
class DecisionView:
    """State before decision `step`, for all environments of a run."""

    step: int  # 1-based
    steps: int
    slots: tuple[str, ...]  # network order
    blueprints: tuple[str, ...]  # order of the blueprint head
    table: SeedTable
    alive: Bools  # [E]
    signals: Signals
    masks: DecisionMasks
    observation: Floats32  # [E, width]


def follow(masks: DecisionMasks, wishes: Ints) -> tuple[Ints, Bools]:
    """Return decisions [E, head] that follow `wishes` (0 in unused heads), and where all wishes were permitted [E]."""
    decisions = np.zeros_like(wishes)
    permitted_mask = all_true(len(wishes))
    for head in range(len(masks.sizes)):
        mask = masks.mask(head, decisions[:, :head])
        used_mask = mask.any(axis=1)
        wish = np.where(used_mask, wishes[:, head], 0)
        fit_mask = mask[np.arange(len(wishes)), wish] | ~used_mask
        decisions[:, head] = np.where(fit_mask, wish, 0)
        permitted_mask &= fit_mask
    return decisions, permitted_mask
