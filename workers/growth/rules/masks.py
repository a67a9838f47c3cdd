"""Exact masks for every head of a decision, given the choices of the heads before it.

A row without any True means that the operation does not use the head; its choice is then 0.
"""

from __future__ import annotations

import numpy as np

from workers.facts import Bools, Floats, Ints
from workers.growth.rules.predicates import Rules, rampable, retargets, valid_operations
from workers.growth.rules.seeds import SeedTable
from workers.vocabulary import (
    ALPHA_CURVE,
    ALPHA_SPEED,
    ALPHA_TARGET,
    ALPHA_TARGETS,
    BLUEPRINT,
    GERMINATE,
    HEADS,
    OP,
    PRUNE,
    SET_ALPHA_TARGET,
    SLOT,
    SPEEDS,
    STYLE,
    TEMPO,
    WAIT,
    head_sizes,
)

_INSTANT = SPEEDS.index(0)
_TARGETS = np.array(ALPHA_TARGETS)


class DecisionMasks:
    """Masks of one step, [E, size(head)] per head: a snapshot, unaffected by later changes of the table."""

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
        """Return the mask of `head` [E, size(head)], given the choices `chosen` [E, head] of all heads before it."""
        if chosen.shape[1] != head:
            raise ValueError(f"the mask of head {HEADS[head]} needs {head} earlier choices, not {chosen.shape[1]}")
        if head == OP:
            ops: Bools = np.asarray(self.valid.any(axis=2))
            ops[:, WAIT] = True
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
        """Return [E], True where every head of `decisions` [E, head] is allowed by its mask, and 0 where unused."""
        in_range = np.asarray(((decisions >= 0) & (decisions < np.array(self._sizes))).all(axis=1))
        chosen = np.where(in_range[:, None], decisions, 0)
        op, slot = chosen[:, OP], chosen[:, SLOT]
        waits, germinates, retarget = op == WAIT, self._germinates(chosen), op == SET_ALPHA_TARGET
        pair = self._retargets[self._rows, slot, chosen[:, STYLE], chosen[:, ALPHA_TARGET]]
        possible = waits | (self.valid[self._rows, op, slot] & (pair | ~retarget))
        # Otherwise a used head may take any value in its range, and an unused one must be 0.
        used = np.empty(chosen.shape, dtype=np.bool_)
        used[:, OP], used[:, SLOT] = True, ~waits
        used[:, BLUEPRINT] = used[:, TEMPO] = germinates
        used[:, STYLE] = used[:, ALPHA_TARGET] = germinates | retarget
        used[:, ALPHA_SPEED] = self._ramps(chosen)
        used[:, ALPHA_CURVE] = self._bends(chosen)
        return np.asarray(in_range & possible & (used | (chosen == 0)).all(axis=1))

    def _germinates(self, chosen: Ints) -> Bools:
        return np.asarray(chosen[:, OP] == GERMINATE)

    def _style_or_target(self, head: int, chosen: Ints) -> Bools:
        pairs = self._retargets[self._rows, chosen[:, SLOT]]  # [E, style, target]
        allowed = pairs.any(axis=2) if head == STYLE else pairs[self._rows, chosen[:, STYLE]]
        retarget = chosen[:, OP] == SET_ALPHA_TARGET
        return np.asarray(self._germinates(chosen)[:, None] | (retarget[:, None] & allowed))

    def _ramps(self, chosen: Ints) -> Bools:
        """Return where the speed head is used [E]: only where alpha would change."""
        slot = chosen[:, SLOT]
        moves = (chosen[:, OP] == SET_ALPHA_TARGET) & (
            _TARGETS[chosen[:, ALPHA_TARGET]] != self._alpha_target[self._rows, slot]
        )
        blends_out = (chosen[:, OP] == PRUNE) & self._rampable[self._rows, slot]
        return np.asarray(moves | blends_out)

    def _bends(self, chosen: Ints) -> Bools:
        return np.asarray(self._ramps(chosen) & (chosen[:, ALPHA_SPEED] != _INSTANT))


def decision_masks(
    table: SeedTable, rules: Rules, n_blueprints: int, val_acc: Floats, alive: Bools, step: int
) -> DecisionMasks:
    """Compute the masks of decision `step`; `val_acc`, `alive`: [E]."""
    return DecisionMasks(table, valid_operations(table, rules, val_acc, alive, step), n_blueprints)
