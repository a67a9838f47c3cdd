"""The alpha controller: ramps of a seed's weight in the forward pass, one tick per epoch. Independent of stages.

A ramp is set from HOLD only; at its last tick it snaps to the target and holds again, so alpha equals its target
whenever the mode is HOLD.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from workers.facts import Bools, Floats, Ints
from workers.growth.rules.seeds import SeedTable
from workers.vocabulary import Curve

_STEEPNESS = 12.0  # slope of the sigmoid ramp


class AlphaMode(IntEnum):
    """State of a ramp: at rest, rising or falling."""

    HOLD = 0
    UP = 1
    DOWN = 2


HOLD, UP, DOWN = map(int, AlphaMode)  # for arrays: see vocabulary
_COSINE, _SIGMOID = int(Curve.COSINE), int(Curve.SIGMOID)


def progress(curve: Ints, fraction: Floats) -> Floats:
    """Return the share of the way after `fraction` of the ramp's epochs, elementwise; every curve runs from 0 to 1."""
    low = 1.0 / (1.0 + np.exp(0.5 * _STEEPNESS))
    logistic = 1.0 / (1.0 + np.exp(-_STEEPNESS * (fraction - 0.5)))
    sigmoid = (logistic - low) / (1.0 - 2.0 * low)
    cosine = (1.0 - np.cos(np.pi * fraction)) / 2.0
    return np.where(curve == _COSINE, cosine, np.where(curve == _SIGMOID, sigmoid, fraction))


def retarget(table: SeedTable, selected: Bools, target: Floats, steps: Ints, curve: Ints) -> None:
    """Start ramps of `steps` epochs to `target` in `selected`; with 0 steps or no distance, set alpha at once.

    All arrays [E, S]. ValueError when a selected ramp is still in progress or a target is outside [0, 1].
    """
    if (selected & (table.alpha_mode != HOLD)).any():
        raise ValueError("a ramp in progress cannot be retargeted")
    if (selected & ~((target >= 0.0) & (target <= 1.0))).any():
        raise ValueError("an alpha target lies in [0, 1]")
    at_once = (steps == 0) | (target == table.alpha)
    direction = np.where(target > table.alpha, UP, DOWN)
    table.alpha_start[selected] = table.alpha[selected]
    table.alpha_target[selected] = target[selected]
    table.curve[selected] = curve[selected]
    table.steps_total[selected] = np.where(at_once, 0, steps)[selected]
    table.steps_done[selected] = 0
    table.alpha_mode[selected] = np.where(at_once, HOLD, direction)[selected]
    table.alpha[selected] = np.where(at_once, target, table.alpha)[selected]


def tick(table: SeedTable, selected: Bools) -> Bools:
    """Advance every ramp among `selected` by one epoch; return where a ramp reached its target, [E, S]."""
    ramping = selected & (table.alpha_mode != HOLD)
    if not ramping.any():
        return np.asarray(ramping)
    table.steps_done[ramping] += 1
    reached = ramping & (table.steps_done >= table.steps_total)
    fraction = table.steps_done / np.maximum(table.steps_total, 1)
    start, target = table.alpha_start, table.alpha_target
    moved = np.clip(
        start + (target - start) * progress(table.curve, fraction), np.minimum(start, target), np.maximum(start, target)
    )
    table.alpha[ramping] = np.where(reached, target, moved)[ramping]
    table.alpha_mode[reached] = HOLD
    return np.asarray(reached)
