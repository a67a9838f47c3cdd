"""Input of a controller before a decision, read-only by convention; and choices that follow its masks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workers.arrays import Bools, Floats32, Ints, all_true
from workers.growth.rules.masks import DecisionMasks
from workers.growth.rules.seeds import SeedTable
from workers.growth.rules.tracker import Signals


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
    """Return decisions [E, head] that follow `wishes`, 0 in unused heads, and whether all were permitted, [E]."""
    decisions = np.zeros_like(wishes)
    permitted = all_true(len(wishes))
    for head in range(len(masks.sizes)):
        mask = masks.mask(head, decisions[:, :head])
        used = mask.any(axis=1)
        wish = np.where(used, wishes[:, head], 0)
        fits = mask[np.arange(len(wishes)), wish] | ~used
        decisions[:, head] = np.where(fits, wish, 0)
        permitted &= fits
    return decisions, permitted
