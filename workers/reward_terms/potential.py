"""Potential-based shaping over the life of a seed (Ng, Harada, Russell 1999). Independent of other reward terms.

docs/rewards.md, "How the potential telescopes", explains a seed's first and last step.
"""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats, Ints, SeedFacts
from workers.vocabulary import UNKNOWN, Stage

_OF_STAGE = {Stage.GERMINATED: 1.0, Stage.TRAINING: 2.0, Stage.BLENDING: 3.5, Stage.HOLDING: 5.5, Stage.FOSSILIZED: 6.0}
_TABLE = np.array([_OF_STAGE.get(Stage(i), 0.0) if i in set(Stage) else 0.0 for i in range(max(Stage) + 1)])


def stage_potential(stage: Ints) -> Floats:
    """Return P(stage), any shape: 0 for empty and cooling slots, rising to 6 for a fossil."""
    potentials: Floats = _TABLE[stage]
    return potentials


def potential(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return Phi [E, S] = P(stage) + min(epochs_in_stage * epoch_progress_bonus, max_progress_bonus); 0 without seed.

    The builder of the facts stores this at every decision and passes it as `potential_before` at the next.
    """
    stage = np.where(seeds.present, seeds.stage, UNKNOWN)
    progress = np.minimum(seeds.epochs_in_stage * settings.epoch_progress_bonus, settings.max_progress_bonus)
    return np.where(seeds.present, stage_potential(stage) + progress, 0.0)


def pbrs(seeds: SeedFacts, before: Floats, settings: RewardSettings) -> Floats:
    """Return pbrs_weight * (gamma * Phi - before), [E, S]; a slot that lost its seed repays `before`. 0 if disabled."""
    if settings.disable_pbrs:
        return np.zeros_like(before)
    return settings.pbrs_weight * (settings.gamma * potential(seeds, settings) - before)


def birth_bonus(settings: RewardSettings) -> float:
    """Return the bonus for germination, paid at once: pbrs_weight * gamma * P(GERMINATED). 0 when disabled."""
    return 0.0 if settings.disable_pbrs else settings.pbrs_weight * settings.gamma * _OF_STAGE[Stage.GERMINATED]


def before_with_birth(seeds: SeedFacts) -> Floats:
    """Return `potential_before` [E, S] for a mode that paid `birth_bonus` when it sampled GERMINATE.

    A seed validated once since germination appeared after the previous decision, so its slot's stored potential is 0,
    but P(GERMINATED) was already paid for it; without this it would be paid twice.
    """
    newborn = seeds.present & (seeds.age == 1)
    born_with = np.maximum(seeds.potential_before, _OF_STAGE[Stage.GERMINATED])
    return np.where(newborn, born_with, seeds.potential_before)
