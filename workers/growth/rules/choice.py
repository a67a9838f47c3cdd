"""Choices under masks as they are requested."""

from __future__ import annotations

import numpy as np

from workers.arrays import Bools, Ints, all_true
from workers.growth.rules.masks import DecisionMasks


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
