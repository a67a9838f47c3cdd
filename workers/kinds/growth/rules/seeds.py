"""State of every seed in every environment as arrays, with its transitions: stages and alpha ramps.

E environments, S enabled slots in network order; every array is [E, S]. A slot without a live module holds the blanks
below, so a dropped seed cannot affect the next one. `transition` is the only function that changes a stage.

Alpha is a seed's weight in the forward pass. Alpha's ramps advance once per epoch and are independent of stages. A ramp
can start only in HOLD. At its last tick alpha snaps to the target and the mode returns to HOLD, so alpha equals its
target whenever the mode is HOLD.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from workers.arrays import Bools, Floats, Ints, all_false
from workers.kinds.growth.vocabulary import DORMANT, Curve, Stage

_LIVE = all_false(max(Stage) + 1)  # indexed by stage
_LIVE[[Stage.GERMINATED, Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]] = True

# Fields of a live module, with their values in a slot without a module.
_MODULE_BLANKS: dict[str, int | float | bool] = {
    "age": 0,
    "blueprint": -1,
    "algorithm": -1,
    "style": -1,
    "alpha": 0.0,
    "alpha_start": 0.0,
    "alpha_target": 0.0,
    "alpha_mode": 0,
    "curve": 0,
    "steps_total": 0,
    "steps_done": 0,
    "tempo": 0,
    "germination_target": 0.0,
    "acc_at_germination": float("nan"),
    "contribution": float("nan"),
    "velocity": 0.0,
    "interaction_sum": 0.0,
    "params": 0,
    "frozen": False,
}
# Fields that a slot keeps through the cooldown, with their values in an empty slot.
_SLOT_BLANKS: dict[str, int | float | bool] = {
    "stage": DORMANT,
    "previous_stage": DORMANT,
    "epochs_in_stage": 0,
    "previous_epochs_in_stage": 0,
    "acc_at_stage_start": float("nan"),
    "serial": -1,
    "cooldown_left": 0,
}


@dataclass(frozen=True, kw_only=True)
class SeedTable:
    """One entry per environment and slot, [E, S]; only the lifecycle modifies it, in place."""

    stage: Ints  # changed by `transition` only
    previous_stage: Ints
    epochs_in_stage: Ints  # validations since the stage began
    previous_epochs_in_stage: Ints
    age: Ints  # validations since germination
    blueprint: Ints  # index into the enabled blueprints, -1 none
    algorithm: Ints  # vocabulary.Algorithm, -1 none
    style: Ints  # index into vocabulary.STYLES, -1 none
    alpha: Floats
    alpha_start: Floats
    alpha_target: Floats  # of the ramp in progress, or the last one; 0 before the first
    alpha_mode: Ints  # AlphaMode
    curve: Ints  # vocabulary.Curve of the ramp
    steps_total: Ints  # epochs of the ramp
    steps_done: Ints
    tempo: Ints  # epochs of the first ramp
    germination_target: Floats  # alpha target of the first ramp
    acc_at_germination: Floats  # validation accuracy when the seed was germinated, percent
    acc_at_stage_start: Floats  # validation accuracy when the stage began, percent
    contribution: Floats  # last one measured in this life, points; NaN: never measured
    velocity: Floats  # smoothed change of the contribution, points per epoch
    interaction_sum: Floats  # of the last epoch, points
    params: Ints  # trainable parameters of module and gate, blend-out included
    frozen: Bools  # blending out: in the forward pass, but its parameters are not trained
    serial: Ints  # number of the seed in its environment and episode, kept through the cooldown; -1 none
    cooldown_left: Ints  # step ends until a pruned slot is empty again

    @classmethod
    def empty(cls, n_envs: int, n_slots: int) -> SeedTable:
        """Return a table of empty slots."""
        blanks = _MODULE_BLANKS | _SLOT_BLANKS
        return cls(**{name: np.full((n_envs, n_slots), blank_value) for name, blank_value in blanks.items()})

    @property
    def present(self) -> Bools:
        """Slots [E, S] with a live module: GERMINATED … FOSSILIZED."""
        return np.asarray(_LIVE[self.stage])

    @property
    def available(self) -> Bools:
        """Slots [E, S] where a seed may germinate: empty, with the cooldown over."""
        return np.asarray(self.stage == DORMANT)

    def clear_module(self, slot_mask: Bools) -> None:
        """Reset all module fields of `slot_mask` [E, S]."""
        for name, blank_value in _MODULE_BLANKS.items():
            getattr(self, name)[slot_mask] = blank_value


def seed_id(env: int, serial: int) -> str:
    """Return the seed's name, unique within a run's episode."""
    return f"e{env}s{serial}"


def slot_of(table: SeedTable, serial: Ints) -> Ints:
    """Return the slot [E] of the live seed `serial` [E], -1 if there is none; ValueError if a serial occurs twice."""
    matches = (table.serial == serial[:, None]) & table.present  # [E, S]
    if (matches.sum(axis=1) > 1).any():
        env = int(np.argmax(matches.sum(axis=1) > 1))
        raise ValueError(f"seed {seed_id(env, int(serial[env]))} is in more than one slot")
    return np.where(matches.any(axis=1), matches.argmax(axis=1), -1)


TRANSITIONS: dict[Stage, tuple[Stage, ...]] = {
    Stage.UNKNOWN: (Stage.DORMANT,),
    Stage.DORMANT: (Stage.GERMINATED,),
    Stage.GERMINATED: (Stage.TRAINING, Stage.PRUNED),
    Stage.TRAINING: (Stage.BLENDING, Stage.PRUNED),
    Stage.BLENDING: (Stage.HOLDING, Stage.PRUNED),
    Stage.HOLDING: (Stage.FOSSILIZED, Stage.BLENDING, Stage.PRUNED),
    Stage.FOSSILIZED: (),
    Stage.PRUNED: (Stage.EMBARGOED,),
    Stage.EMBARGOED: (Stage.RESETTING,),
    Stage.RESETTING: (Stage.DORMANT,),
}
_LEGAL = all_false((max(Stage) + 1, max(Stage) + 1))  # [from, to]
for _source, _targets in TRANSITIONS.items():
    _LEGAL[_source, list(_targets)] = True


class IllegalTransition(ValueError):
    """A stage change that the transition table does not allow."""


def transition(table: SeedTable, slot_mask: Bools, target: Stage, val_acc: Floats) -> None:
    """Move every slot of `slot_mask` [E, S] to `target`; if any slot may not move, raise IllegalTransition and move
    none.

    `val_acc` [E] is the last validation accuracy, the baseline for improvement within the new stage.
    """
    stages_before = table.stage[slot_mask]
    if not _LEGAL[stages_before, int(target)].all():
        env, slot = (int(i) for i in np.argwhere(slot_mask & ~_LEGAL[table.stage, int(target)])[0])
        stage = int(table.stage[env, slot])
        raise IllegalTransition(f"environment {env}, slot {slot}: no transition from stage {stage} to {target.name}")
    table.previous_stage[slot_mask] = stages_before
    table.previous_epochs_in_stage[slot_mask] = table.epochs_in_stage[slot_mask]
    table.stage[slot_mask] = int(target)
    table.epochs_in_stage[slot_mask] = 0
    table.acc_at_stage_start[slot_mask] = val_acc[slot_mask.nonzero()[0]]


_STEEPNESS = 12.0  # slope of the sigmoid ramp


class AlphaMode(IntEnum):
    """State of a ramp: at rest, rising or falling."""

    HOLD = 0
    UP = 1
    DOWN = 2


HOLD, UP, DOWN = map(int, AlphaMode)  # for arrays: see vocabulary
_COSINE = int(Curve.COSINE)
_SIGMOID = int(Curve.SIGMOID)


def progress(curve: Ints, fraction: Floats) -> Floats:
    """Return the completed share of a ramp after `fraction` of its epochs, elementwise; all curves run from 0 to 1."""
    low = 1.0 / (1.0 + np.exp(0.5 * _STEEPNESS))
    logistic = 1.0 / (1.0 + np.exp(-_STEEPNESS * (fraction - 0.5)))
    sigmoid = (logistic - low) / (1.0 - 2.0 * low)
    cosine = (1.0 - np.cos(np.pi * fraction)) / 2.0
    return np.where(curve == _COSINE, cosine, np.where(curve == _SIGMOID, sigmoid, fraction))


def retarget(table: SeedTable, slot_mask: Bools, target: Floats, steps: Ints, curve: Ints) -> None:
    """Start ramps of `steps` epochs to `target` in `slot_mask`; if the steps or the distance are 0, set alpha at once.

    All arrays are [E, S]. Raises ValueError if a selected ramp is in progress or a target is outside [0, 1].
    """
    if (slot_mask & (table.alpha_mode != HOLD)).any():
        raise ValueError("a ramp in progress cannot be retargeted")
    if (slot_mask & ~((target >= 0.0) & (target <= 1.0))).any():
        raise ValueError("an alpha target must be in [0, 1]")
    instant_mask = (steps == 0) | (target == table.alpha)
    direction = np.where(target > table.alpha, UP, DOWN)
    table.alpha_start[slot_mask] = table.alpha[slot_mask]
    table.alpha_target[slot_mask] = target[slot_mask]
    table.curve[slot_mask] = curve[slot_mask]
    table.steps_total[slot_mask] = np.where(instant_mask, 0, steps)[slot_mask]
    table.steps_done[slot_mask] = 0
    table.alpha_mode[slot_mask] = np.where(instant_mask, HOLD, direction)[slot_mask]
    table.alpha[slot_mask] = np.where(instant_mask, target, table.alpha)[slot_mask]


def tick(table: SeedTable, slot_mask: Bools) -> Bools:
    """Advance every ramp in `slot_mask` by one epoch; return where a ramp reached its target, [E, S]."""
    ramping_mask = slot_mask & (table.alpha_mode != HOLD)
    if not ramping_mask.any():
        return np.asarray(ramping_mask)
    table.steps_done[ramping_mask] += 1
    reached_mask = ramping_mask & (table.steps_done >= table.steps_total)
    fraction = table.steps_done / np.maximum(table.steps_total, 1)
    start = table.alpha_start
    target = table.alpha_target
    alpha = start + (target - start) * progress(table.curve, fraction)
    moved_alpha = np.clip(alpha, np.minimum(start, target), np.maximum(start, target))
    table.alpha[ramping_mask] = np.where(reached_mask, target, moved_alpha)[ramping_mask]
    table.alpha_mode[reached_mask] = HOLD
    return np.asarray(reached_mask)
