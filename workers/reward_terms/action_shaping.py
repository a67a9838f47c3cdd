"""SHAPED's payment or charge for the decision itself, in the slot it acts on. Independent of other reward terms.

Branches for decisions that the masks forbid are kept: the function is total, and the golden cases of the reference
system (tests/golden) can be checked against it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.facts import Floats, SeedFacts, StepFacts
from workers.reward_terms.potential import birth_bonus
from workers.reward_terms.slots import acted_on, first_of
from workers.vocabulary import FOSSILIZED, HOLDING, Op

_MIN_CONTRIBUTION = 1.0  # points a seed must contribute for its fossilisation to be rewarded
_SETTLED_EPOCHS = 5  # epochs in HOLDING for the full bonus
_MIN_PRUNE_AGE = 1
_TOO_YOUNG_PENALTY = -0.3
_PRUNE_NOTHING_PENALTY = -0.2


def action_shaping(facts: StepFacts, seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the price of each decision, [E]; `seeds`: the facts' own, absent entries blanked. WAIT and ADVANCE: 0."""
    total = np.zeros(len(facts.op))
    decided = set(facts.op.tolist())
    for op, price in _PRICES.items():
        if op in decided:
            total += np.where(acted_on(facts, op), price(seeds, settings), 0.0).sum(axis=1)
    return total


def _germinate(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    price = np.where(seeds.present, settings.germinate_with_seed_penalty, birth_bonus(settings))
    return np.asarray(price + settings.germinate_cost)


def _set_alpha_target(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    return np.full(seeds.present.shape, settings.set_alpha_target_cost)


def _fossilize(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    contribution, improvement = seeds.contribution, seeds.total_improvement
    harmful = -0.5 - np.minimum(0.2 * np.abs(improvement), 1.0)
    disguised = (contribution > 0.1) & (improvement < -0.2)
    settled = np.minimum(1.0, seeds.epochs_in_stage / _SETTLED_EPOCHS)
    bonus = (settings.fossilize_base_bonus + settings.fossilize_contribution_scale * contribution) * settled
    price = first_of(
        (seeds.stage != HOLDING, settings.invalid_fossilize_penalty), (improvement < 0, harmful - 0.3 * disguised),
        (contribution >= _MIN_CONTRIBUTION, bonus), otherwise=settings.fossilize_noncontributing_penalty,
    )
    return price + settings.fossilize_cost


def _prune(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    contribution, loss = seeds.contribution, settings.prune_good_seed_penalty
    useful = np.maximum(loss - 0.05 * contribution, 3.0 * loss)
    price = first_of(
        (~seeds.present, _PRUNE_NOTHING_PENALTY), (seeds.stage == FOSSILIZED, settings.prune_fossilized_penalty),
        (seeds.age < _MIN_PRUNE_AGE, _TOO_YOUNG_PENALTY * (_MIN_PRUNE_AGE - seeds.age)),
        (contribution < settings.prune_hurting_threshold, settings.prune_hurting_bonus),
        (contribution < 0, settings.prune_acceptable_bonus), (contribution >= 0, useful), otherwise=0.0,
    )
    return price + settings.prune_cost


_PRICES: dict[Op, Callable[[SeedFacts, RewardSettings], Floats]] = {
    Op.GERMINATE: _germinate, Op.SET_ALPHA_TARGET: _set_alpha_target, Op.PRUNE: _prune, Op.FOSSILIZE: _fossilize
}
