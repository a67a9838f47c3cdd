"""SPARSE: zero until the last step, then best accuracy minus a price on size. Formulas: docs/internals/rewards.md."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import Floats, StepFacts


def reward(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the reward [E], within ±`sparse_reward_scale`."""
    if facts.step != facts.steps:
        return np.zeros_like(facts.best_val_acc)
    size_cost = settings.param_penalty_weight * facts.total_params / settings.param_budget
    score: Floats = settings.sparse_reward_scale * np.clip(facts.best_val_acc / 100.0 - size_cost, -1.0, 1.0)
    return score
