"""Result of one validation pass, for all environments at once."""

from __future__ import annotations

from dataclasses import dataclass

from workers.facts import Bools, Floats


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
