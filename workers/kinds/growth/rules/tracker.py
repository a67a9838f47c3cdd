"""Measurements of one epoch in all environments, and the signals derived from them: deltas, plateaus, histories.

Independent of seeds, except for `summary_seed`, which picks one from the seed table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workers.arrays import Bools, Floats, Ints, all_false, int_zeros
from workers.kinds.growth.rules.seeds import SeedTable


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Measurements of one epoch. Losses are per-sample means in nats, accuracies percent, contributions points."""

    train_loss: Floats  # [E]
    train_acc: Floats  # [E]
    val_loss: Floats  # [E]
    val_acc: Floats  # [E]
    all_off_acc: Floats  # [E] validation accuracy with every seed at alpha 0; val_acc when nothing is on
    contribution: Floats  # [E, S] leave-one-out; NaN where not measured
    interaction_sum: Floats  # [E, S] 0 where not measured
    finite: Bools  # [E] False where the host has diverged


HISTORY = 5
_NUMBERS = (
    "train_loss",
    "train_acc",
    "val_loss",
    "val_acc",
    "loss_delta",
    "acc_delta",
    "best_val_loss",
    "best_val_acc",
)
PLATEAU_POINTS = 0.5  # an epoch that gains less counts towards a plateau
_STABLE_IMPROVEMENT = 0.03  # relative loss improvement below which an epoch is stable
_STABLE_EPOCHS = 3  # consecutive stable epochs until the host counts as stabilised


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Signals after the last measurement. NaN means that there is no earlier value to compare with."""

    train_loss: Floats  # [E] nats
    train_acc: Floats  # [E] percent
    val_loss: Floats  # [E]
    val_acc: Floats  # [E]
    loss_delta: Floats  # [E] previous minus current: positive is improvement; NaN at the first epoch
    acc_delta: Floats  # [E] current minus previous, points; NaN at the first epoch
    plateau_epochs: Ints  # [E] consecutive epochs that gained less than PLATEAU_POINTS
    best_val_loss: Floats  # [E] best in the episode
    best_val_acc: Floats  # [E] best in the episode
    loss_history: Floats  # [E, HISTORY] validation losses, oldest first, NaN before the first
    acc_history: Floats  # [E, HISTORY]
    stable_epochs: Ints  # [E] consecutive stable epochs
    stabilized: Bools  # [E] latched for the rest of the episode once the host has stabilised

    @classmethod
    def unknown(cls, n_envs: int) -> Signals:
        """Return the signals before the first measurement of an episode."""
        history = np.full((n_envs, HISTORY), np.nan)
        return cls(
            **dict.fromkeys(_NUMBERS, np.full(n_envs, np.nan)),
            plateau_epochs=int_zeros(n_envs),
            loss_history=history,
            acc_history=history,
            stable_epochs=int_zeros(n_envs),
            stabilized=all_false(n_envs),
        )

    def after(self, measurement: Measurement, alive_mask: Bools) -> Signals:
        """Return the signals after one more measurement; environments not in `alive_mask` [E] keep their signals.

        An epoch is stable if the loss improved by less than 3 %. In the first epoch, comparisons with NaN give False.
        """
        loss_delta = self.val_loss - measurement.val_loss
        acc_delta = measurement.val_acc - self.val_acc
        stable_mask = (loss_delta >= 0.0) & (loss_delta < _STABLE_IMPROVEMENT * self.val_loss)
        stable_epochs = np.where(stable_mask, self.stable_epochs + 1, 0)
        next_signals = Signals(
            train_loss=measurement.train_loss,
            train_acc=measurement.train_acc,
            val_loss=measurement.val_loss,
            val_acc=measurement.val_acc,
            loss_delta=loss_delta,
            acc_delta=acc_delta,
            plateau_epochs=np.where(acc_delta < PLATEAU_POINTS, self.plateau_epochs + 1, 0),
            best_val_loss=np.fmin(self.best_val_loss, measurement.val_loss),
            best_val_acc=np.fmax(self.best_val_acc, measurement.val_acc),
            loss_history=np.concatenate((self.loss_history[:, 1:], measurement.val_loss[:, None]), axis=1),
            acc_history=np.concatenate((self.acc_history[:, 1:], measurement.val_acc[:, None]), axis=1),
            stable_epochs=stable_epochs,
            stabilized=self.stabilized | (stable_epochs >= _STABLE_EPOCHS),
        )
        if alive_mask.all():
            return next_signals
        kept_values: dict[str, Any] = {}
        for name, new_value in vars(next_signals).items():
            updated_mask = alive_mask if new_value.ndim == 1 else alive_mask[:, None]
            kept_values[name] = np.where(updated_mask, new_value, getattr(self, name))
        return Signals(**kept_values)


def summary_seed(table: SeedTable, seed_mask: Bools) -> Ints:
    """Return the slot [E] of the seed that represents all seeds in `seed_mask` [E, S]; -1 if there is none.

    The order is: highest stage; highest alpha; most negative contribution, for safety, with unmeasured seeds last;
    youngest seed. Serials are unique, so the choice is unique.
    """
    badness = np.where(np.isnan(table.contribution), -np.inf, -table.contribution)
    rank_order = np.lexsort((table.serial, badness, table.alpha, table.stage, seed_mask), axis=-1)  # the last key leads
    return np.where(seed_mask.any(axis=1), rank_order[:, -1], -1)
