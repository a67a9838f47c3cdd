"""SHAPED: a dense reward from measured contributions, warnings, potential, rent and the price of each decision.

With `family = "loss"`, the reward is the loss family instead (`reward_terms.loss_family`). Formulas:
docs/internals/rewards.md.
"""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import Floats, SeedFacts, StepFacts
from workers.kinds.growth.reward_terms import (
    action_shaping,
    attribution,
    before_with_birth,
    blank_absent,
    loss_family,
    pbrs,
)
from workers.kinds.growth.vocabulary import BLENDING, HOLDING, WAIT

GAMMA = 0.995
_WORST_HOLDING_WARNING = -10.0


def reward(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the reward [E]; ValueError unless gamma is 0.995, for which the bonuses were tuned."""
    if settings.gamma != GAMMA:
        raise ValueError(f"reward mode shaped needs reward.gamma = {GAMMA}, not {settings.gamma}")
    if settings.family == "loss":
        return loss_family(facts, settings)
    total: Floats = np.sum(tuple(terms(facts, settings).values()), axis=0)
    return total


def terms(facts: StepFacts, settings: RewardSettings) -> dict[str, Floats]:
    """Return the terms of the contribution family by name, each [E] and summed over slots; the reward is their sum."""
    seeds = blank_absent(facts.seeds)
    bounded_pay = attribution(facts, seeds, settings)
    harmful_mask = (seeds.stage == BLENDING) & (seeds.total_improvement < 0)
    blending_warning = np.where(harmful_mask, -0.1 - np.minimum(0.05 * seeds.epochs_in_stage, 0.3), 0.0)
    synergy = np.where(seeds.interaction_sum > 0, 0.1 * np.tanh(0.5 * seeds.interaction_sum), 0.0)
    return dict(
        attribution=bounded_pay.sum(axis=1),
        blending_warning=blending_warning.sum(axis=1),
        holding_warning=_holding_warning(facts, seeds, bounded_pay).sum(axis=1),
        pbrs=pbrs(seeds, before_with_birth(seeds), settings).sum(axis=1),
        synergy=synergy.sum(axis=1),
        rent=_rent(facts, settings),
        alpha_shock=_alpha_shock(facts, settings),
        action_shaping=action_shaping(facts, seeds, settings),
        terminal=_terminal(facts, settings),
    )


def _holding_warning(facts: StepFacts, seeds: SeedFacts, bounded_pay: Floats) -> Floats:
    """Return the penalty for waiting in HOLDING with positive attribution: -1, -3, -9, then -10 per step."""
    idle_mask = (facts.op == WAIT)[:, None] & (seeds.stage == HOLDING)
    overdue_epochs = np.clip(seeds.epochs_in_stage - 2, 0, 3)
    warning = np.maximum(-(3.0**overdue_epochs), _WORST_HOLDING_WARNING)
    return np.where(idle_mask & (seeds.epochs_in_stage >= 2) & (bounded_pay > 0), warning, 0.0)


def _rent(facts: StepFacts, settings: RewardSettings) -> Floats:
    unmeasured_mask = np.isnan(facts.effective_seed_params)
    added_params = np.maximum(facts.total_params - facts.host_params, 0)
    overhead = np.where(unmeasured_mask, added_params, facts.effective_seed_params)
    due_mask = (facts.host_params > 0) & (overhead > 0)
    growth = np.divide(overhead, facts.host_params, out=np.zeros_like(overhead), where=due_mask)
    return -np.minimum(settings.rent_weight * np.log1p(growth), settings.max_rent)


def _alpha_shock(facts: StepFacts, settings: RewardSettings) -> Floats:
    if settings.disable_anti_gaming:
        return np.zeros_like(facts.alpha_delta_sq_sum)
    return -settings.alpha_shock_coef * facts.alpha_delta_sq_sum


def _terminal(facts: StepFacts, settings: RewardSettings) -> Floats:
    if facts.step != facts.steps or settings.disable_terminal_reward:
        return np.zeros_like(facts.val_acc)
    return facts.val_acc * settings.terminal_acc_weight + facts.contributing * settings.fossilize_terminal_scale
