"""Every seed of every environment as structure of arrays. Knows no module, no optimiser and no rule of the lifecycle.

E environments, S enabled slots in network order; every array is [E, S]. A slot without a live module holds the blanks
below, so nothing of a dropped seed can leak into the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workers.facts import Bools, Floats, Ints
from workers.vocabulary import DORMANT, Stage

_LIVE = np.zeros(max(Stage) + 1, dtype=np.bool_)  # by stage
_LIVE[[Stage.GERMINATED, Stage.TRAINING, Stage.BLENDING, Stage.HOLDING, Stage.FOSSILIZED]] = True

# What belongs to a live module, and what a slot without one holds.
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
# What a slot keeps through the cooldown.
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
    """One entry per environment and slot, [E, S]; changed in place by the lifecycle, read by everybody else."""

    stage: Ints  # changed by stages.transition only
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
    alpha_mode: Ints  # alpha.AlphaMode
    curve: Ints  # vocabulary.Curve of the ramp
    steps_total: Ints  # epochs of the ramp
    steps_done: Ints
    tempo: Ints  # epochs of the first ramp
    germination_target: Floats  # alpha target of the first ramp
    acc_at_germination: Floats  # validation accuracy when the seed was germinated, percent
    acc_at_stage_start: Floats  # validation accuracy when the stage began, percent
    contribution: Floats  # last measured in this life, points; NaN never measured
    velocity: Floats  # smoothed change of the contribution, points per epoch
    interaction_sum: Floats  # of the last epoch, points
    params: Ints  # trainable parameters of module and gate, blend-out included
    frozen: Bools  # blending out: in the forward pass, but its parameters are not trained
    serial: Ints  # number of the seed in its environment and episode, kept through the cooldown; -1 none
    cooldown_left: Ints  # ends of steps until a pruned slot is empty again

    @classmethod
    def empty(cls, n_envs: int, n_slots: int) -> SeedTable:
        """A table of empty slots."""
        blanks = _MODULE_BLANKS | _SLOT_BLANKS
        return cls(**{name: np.full((n_envs, n_slots), blank) for name, blank in blanks.items()})

    @property
    def present(self) -> Bools:
        """[E, S] a live module is there: GERMINATED … FOSSILIZED."""
        return np.asarray(_LIVE[self.stage])

    @property
    def available(self) -> Bools:
        """[E, S] the slot is empty, cooldown over: a seed may be germinated."""
        return np.asarray(self.stage == DORMANT)

    def clear_module(self, selected: Bools) -> None:
        """Forget everything that belonged to the modules of `selected` [E, S]."""
        for name, blank in _MODULE_BLANKS.items():
            getattr(self, name)[selected] = blank


def seed_id(env: int, serial: int) -> str:
    """The seed's name, unique within a run's episode."""
    return f"e{env}s{serial}"


def slot_of(table: SeedTable, serial: Ints) -> Ints:
    """Slot [E] where the live seed `serial` [E] sits, -1 where there is none; ValueError if a number is not unique."""
    matches = (table.serial == serial[:, None]) & table.present  # [E, S]
    if (matches.sum(axis=1) > 1).any():
        env = int(np.argmax(matches.sum(axis=1) > 1))
        raise ValueError(f"seed {seed_id(env, int(serial[env]))} sits in more than one slot")
    return np.where(matches.any(axis=1), matches.argmax(axis=1), -1)
