"""Choices under masks: at random from given uniforms, or as requested."""

from __future__ import annotations

import numpy as np

from workers.facts import Bools, Floats, Ints
from workers.growth.rules.masks import DecisionMasks


def choose(mask: Bools, uniforms: Floats) -> Ints:
    """Choose uniformly among the True entries of `mask` [E, K] by inverse CDF at `uniforms` [E]; 0 if there is none."""
    count = mask.sum(axis=1)
    rank = np.minimum((uniforms * count).astype(np.int64), count - 1)
    return np.asarray((mask.cumsum(axis=1) > rank[:, None]).argmax(axis=1))


def follow(masks: DecisionMasks, wishes: Ints) -> tuple[Ints, Bools]:
    """Return decisions [E, head] that follow `wishes`, 0 in unused heads, and whether all were permitted, [E]."""
    decisions = np.zeros_like(wishes)
    permitted = np.ones(len(wishes), dtype=np.bool_)
    for head in range(len(masks.sizes)):
        mask = masks.mask(head, decisions[:, :head])
        used = mask.any(axis=1)
        wish = np.where(used, wishes[:, head], 0)
        fits = mask[np.arange(len(wishes)), wish] | ~used
        decisions[:, head] = np.where(fits, wish, 0)
        permitted &= fits
    return decisions, permitted
