"""SIMPLIFIED: the potential, a small price per decision, and the final result. Formulas: docs/internals/rewards.md."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import Floats, StepFacts
from workers.kinds.growth.reward_terms import pbrs
from workers.kinds.growth.vocabulary import WAIT

_DECISION_COST = 0.01
_ACCURACY_SCALE = 3.0  # at 100 %
_FOSSIL_SCALE = 2.0  # per contributing fossil


def reward(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the reward [E]. Uses only the potential's settings and `disable_terminal_reward`."""
    shaping = pbrs(facts.seeds, facts.seeds.potential_before, settings).sum(axis=1)
    total: Floats = shaping - np.where(facts.op != WAIT, _DECISION_COST, 0.0)
    if facts.step == facts.steps and not settings.disable_terminal_reward:
        total = total + _ACCURACY_SCALE * facts.val_acc / 100.0 + _FOSSIL_SCALE * facts.contributing
    return total
