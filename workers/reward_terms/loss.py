"""The loss family: reward from falls of the validation loss. Used by SHAPED when `family = "loss"`.

Positive `loss_delta` is improvement and is rewarded; the reference system (docs/rewards.md,
"What differs from the reference system") has this sign the wrong way round.
"""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats, StepFacts
from workers.reward_terms.per_seed import blank_absent
from workers.reward_terms.potential import stage_potential


def reward(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the reward [E]. The change of loss counts as 0 at the first step, where it is NaN."""
    total = _loss_change(facts, settings) - _rent(facts, settings)
    if not settings.disable_pbrs:
        total = total + _stage_bonus(facts, settings)
    if facts.step == facts.steps and not settings.disable_terminal_reward:
        total = total + _terminal(facts, settings)
    return total


def _loss_change(facts: StepFacts, settings: RewardSettings) -> Floats:
    limit = settings.max_loss_delta
    z = np.clip(facts.loss_delta / settings.typical_loss_delta_std, -limit, limit)
    softened = np.where(z < 0, settings.regression_penalty_scale * z, z)
    return np.where(np.isnan(z), 0.0, settings.loss_delta_weight * softened)


def _rent(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the rent [E], waived while every module present is within its grace period.

    If newcomers were exempt on their own, they would shelter the old modules.
    """
    seeds = facts.seeds
    settled = seeds.present & (seeds.age >= settings.grace_epochs)
    in_grace = seeds.present.any(axis=1) & ~settled.any(axis=1)
    added = (facts.total_params - facts.host_params).astype(np.float64)
    due = (facts.host_params > 0) & (added > 0) & ~in_grace
    growth = np.divide(added, facts.host_params, out=np.zeros_like(added), where=due)
    return np.minimum(settings.compute_rent_weight * np.log1p(growth), settings.max_rent_penalty)


def _stage_bonus(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return gamma * P(stage) - P(previous stage) at every step: it favours late stages and does not telescope."""
    seeds = blank_absent(facts.seeds)
    change = settings.gamma * stage_potential(seeds.stage) - stage_potential(seeds.previous_stage)
    total: Floats = settings.stage_potential_weight * change.sum(axis=1)
    return total


def _terminal(facts: StepFacts, settings: RewardSettings) -> Floats:
    span = settings.baseline_loss - settings.target_loss
    reached = (settings.baseline_loss - facts.val_loss) / span if span != 0 else np.ones_like(facts.val_loss)
    return settings.terminal_loss_weight * np.clip(reached, 0.0, 1.0)
