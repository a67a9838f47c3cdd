"""Exact masks for every head of a decision, given the choices of the heads before it. Knows no policy.

A row without any True says that the operation does not use the head; its choice is then 0.
"""

from __future__ import annotations

import numpy as np

from workers.growth.predicates import Rules, rampable, retargets, valid_operations
from workers.growth.seeds import SeedTable
from workers.rewards._facts import Bools, Floats, Ints
from workers.vocabulary import (
    ALPHA_SPEED,
    ALPHA_TARGET,
    ALPHA_TARGETS,
    BLUEPRINT,
    HEADS,
    OP,
    SLOT,
    SPEEDS,
    STYLE,
    TEMPO,
    Op,
    head_sizes,
)

_INSTANT = SPEEDS.index(0)


class DecisionMasks:
    """The masks of one step, [E, size(head)] per head: a snapshot, unaffected by what happens to the table later."""

    def __init__(self, table: SeedTable, valid: Bools, n_blueprints: int) -> None:
        self.valid = valid  # [E, op, S]
        self._sizes = head_sizes(table.stage.shape[1], n_blueprints)
        self._rampable = rampable(table)  # [E, S]
        self._retargets = retargets(table)  # [E, S, style, target]
        self._alpha_target = table.alpha_target.copy()  # [E, S]
        self._rows = np.arange(table.stage.shape[0])

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of choices of each head, in the order of HEADS."""
        return self._sizes

    def mask(self, head: int, chosen: Ints) -> Bools:
        """What `head` may say [E, size(head)], given the choices `chosen` [E, head] of all heads before it."""
        if chosen.shape[1] != head:
            raise ValueError(f"the mask of head {HEADS[head]} needs {head} earlier choices, not {chosen.shape[1]}")
        if head == OP:
            ops: Bools = np.asarray(self.valid.any(axis=2))
            ops[:, Op.WAIT] = True
            return ops
        if head == SLOT:
            return self.valid[self._rows, chosen[:, OP]]
        if head in (STYLE, ALPHA_TARGET):
            return self._style_or_target(head, chosen)
        if head in (BLUEPRINT, TEMPO):
            used = self._germinates(chosen)
        else:
            used = self._ramps(chosen) if head == ALPHA_SPEED else self._bends(chosen)
        return np.repeat(used[:, None], self._sizes[head], axis=1)

    def permits(self, decisions: Ints) -> Bools:
        """[E] every head of `decisions` [E, head] says something its mask allows, and 0 where it is not used."""
        permitted = np.ones(len(self._rows), dtype=np.bool_)
        for head, size in enumerate(self._sizes):
            choice = decisions[:, head]
            in_range = (choice >= 0) & (choice < size)
            earlier = np.where(permitted[:, None], decisions[:, :head], 0)
            mask = self.mask(head, earlier)
            allowed = mask[self._rows, np.where(in_range, choice, 0)]
            permitted &= np.where(mask.any(axis=1), in_range & allowed, choice == 0)
        return permitted

    def _germinates(self, chosen: Ints) -> Bools:
        return np.asarray(chosen[:, OP] == Op.GERMINATE)

    def _style_or_target(self, head: int, chosen: Ints) -> Bools:
        pairs = self._retargets[self._rows, chosen[:, SLOT]]  # [E, style, target]
        allowed = pairs.any(axis=2) if head == STYLE else pairs[self._rows, chosen[:, STYLE]]
        retarget = chosen[:, OP] == Op.SET_ALPHA_TARGET
        return np.asarray(self._germinates(chosen)[:, None] | (retarget[:, None] & allowed))

    def _ramps(self, chosen: Ints) -> Bools:
        """A speed matters only where alpha has a way to go."""
        slot = chosen[:, SLOT]
        target = np.array(ALPHA_TARGETS)[chosen[:, ALPHA_TARGET]]
        moves = (chosen[:, OP] == Op.SET_ALPHA_TARGET) & (target != self._alpha_target[self._rows, slot])
        blends_out = (chosen[:, OP] == Op.PRUNE) & self._rampable[self._rows, slot]
        return np.asarray(moves | blends_out)

    def _bends(self, chosen: Ints) -> Bools:
        return np.asarray(self._ramps(chosen) & (chosen[:, ALPHA_SPEED] != _INSTANT))


def decision_masks(
    table: SeedTable, rules: Rules, n_blueprints: int, val_acc: Floats, alive: Bools, step: int
) -> DecisionMasks:
    """The masks of decision `step`; `val_acc`, `alive`: [E]."""
    return DecisionMasks(table, valid_operations(table, rules, val_acc, alive, step), n_blueprints)
