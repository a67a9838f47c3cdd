"""Quality gates: conditions under which a seed may advance or become a fossil.

Permissive gates require only what the next stage presupposes; strict gates require quality. The strict gate into
BLENDING has no gradient-ratio condition, because this project measures no gradient ratios.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from workers.facts import Bools, Floats
from workers.growth.rules.alpha import HOLD
from workers.growth.rules.seeds import SeedTable
from workers.vocabulary import BLENDING, GERMINATED, HOLDING, TRAINING

GateMode = Literal["permissive", "strict"]
CONTRIBUTING_POINTS = 1.0  # contribution when fossilised from which a fossil counts as contributing
_BLEND_EPOCHS = {"permissive": 1, "strict": 3}  # in TRAINING
_HOLD_EPOCHS = {"permissive": 0, "strict": 3}  # in BLENDING
_BLEND_IMPROVEMENT_POINTS = 0.5
_FULL = 1.0 - 1e-6


def may_train(table: SeedTable) -> Bools:
    """Return where GERMINATED -> TRAINING is permitted, [E, S]."""
    return np.asarray(table.stage == GERMINATED)


def may_blend(table: SeedTable, gates: GateMode, val_acc: Floats) -> Bools:
    """Return where TRAINING -> BLENDING is permitted, [E, S]; `val_acc` [E]: last validation accuracy, percent."""
    passed = (table.stage == TRAINING) & (table.epochs_in_stage >= _BLEND_EPOCHS[gates])
    if gates == "strict":
        passed &= val_acc[:, None] - table.acc_at_stage_start >= _BLEND_IMPROVEMENT_POINTS
    return np.asarray(passed)


def may_hold(table: SeedTable, gates: GateMode) -> Bools:
    """Return where BLENDING -> HOLDING is permitted, [E, S]: alpha has reached its target 1; strict: after 3 epochs."""
    full = (table.alpha_mode == HOLD) & (table.alpha_target >= _FULL) & (table.alpha >= _FULL)
    return np.asarray((table.stage == BLENDING) & full & (table.epochs_in_stage >= _HOLD_EPOCHS[gates]))


def may_fossilize(table: SeedTable, gates: GateMode) -> Bools:
    """Return where HOLDING -> FOSSILIZED is permitted, [E, S]: a contribution was measured in this seed's life.

    Strict: it is at least CONTRIBUTING_POINTS.
    """
    smallest = CONTRIBUTING_POINTS if gates == "strict" else -np.inf
    # A contribution never measured is NaN, and NaN compares False.
    return np.asarray((table.stage == HOLDING) & (table.contribution >= smallest))
