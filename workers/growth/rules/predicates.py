"""Validity of operations: the one predicate behind both the masks and the execution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workers.arrays import Bools, Floats, all_false
from workers.growth.rules import gates
from workers.growth.rules.alpha import HOLD
from workers.growth.rules.seeds import SeedTable
from workers.vocabulary import ALPHA_TARGETS, BLENDING, FOSSILIZED, HOLDING, STYLES, Op

MIN_PRUNE_AGE = 1  # validations
_ALGORITHMS, _TARGETS = np.array([int(algorithm) for _, _, algorithm in STYLES]), np.array(ALPHA_TARGETS)
_OPS = len(Op)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """Settings of a run's lifecycle."""

    steps: int  # decisions per episode
    gates: gates.GateMode
    max_seeds: int  # live and fossilised seeds per environment; 0: as many as slots


def seed_limit(rules: Rules, n_slots: int) -> int:
    """Return the number of seeds, live and fossilised, that one environment may hold."""
    return min(rules.max_seeds, n_slots) if rules.max_seeds else n_slots


def rampable(table: SeedTable) -> Bools:
    """Return [E, S], True where alpha affects the forward pass and is at rest, so that it can be ramped."""
    on = (table.stage == BLENDING) | (table.stage == HOLDING)
    return np.asarray(on & (table.alpha_mode == HOLD))


def valid_operations(table: SeedTable, rules: Rules, val_acc: Floats, alive: Bools, step: int) -> Bools:
    """Return [E, op, S], True where the operation is valid on the slot; all False for WAIT, which is always valid.

    `val_acc`, `alive`: [E]. On the last step only FOSSILIZE can still count: nothing else would be measured.
    """
    valid = all_false((table.stage.shape[0], _OPS, table.stage.shape[1]))
    valid[:, Op.FOSSILIZE] = gates.may_fossilize(table, rules.gates)
    if step < rules.steps:
        present = table.present
        room = present.sum(axis=1) < seed_limit(rules, present.shape[1])
        resting = table.alpha_mode == HOLD
        valid[:, Op.GERMINATE] = table.available & room[:, None]
        valid[:, Op.SET_ALPHA_TARGET] = rampable(table)
        valid[:, Op.PRUNE] = present & (table.stage != FOSSILIZED) & resting & (table.age >= MIN_PRUNE_AGE)
        valid[:, Op.ADVANCE] = (
            gates.may_train(table) | gates.may_blend(table, rules.gates, val_acc) | gates.may_hold(table, rules.gates)
        )
    return valid & alive[:, None, None]


def retargets(table: SeedTable) -> Bools:
    """Return [E, S, style, alpha target], True where the pair would change the seed's algorithm or its alpha target."""
    same_algorithm = table.algorithm[:, :, None] == _ALGORITHMS  # [E, S, style]
    same_target = table.alpha_target[:, :, None] == _TARGETS  # [E, S, target]
    return np.asarray(~(same_algorithm[:, :, :, None] & same_target[:, :, None, :]))
