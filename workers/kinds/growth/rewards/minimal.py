"""MINIMAL: SPARSE plus a price on pruning young seeds. Formulas: docs/internals/rewards.md."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import Floats, StepFacts
from workers.kinds.growth.reward_terms import acted_on
from workers.kinds.growth.rewards import sparse
from workers.kinds.growth.vocabulary import Op


def reward(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the reward [E]: SPARSE plus `early_prune_penalty` for pruning a seed before `early_prune_threshold`.

    The threshold counts validations of the seed.
    """
    young_mask = facts.seeds.present & (facts.seeds.age < settings.early_prune_threshold)
    early_mask = (acted_on(facts, Op.PRUNE) & young_mask).any(axis=1)
    return sparse.reward(facts, settings) + np.where(early_mask, settings.early_prune_penalty, 0.0)
