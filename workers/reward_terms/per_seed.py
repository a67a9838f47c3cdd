"""Terms of SHAPED that are paid per seed, and the helpers of all of them: blanked facts, the slot acted on, a choice.

`attribution` is the bounded reward for a seed's measured contribution, `action_shaping` the price of the decision
itself. Branches for decisions that the masks forbid are kept: the function is total, and the golden cases of the
reference system (tests/golden) can be checked against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.settings import RewardSettings
from workers.facts import Bools, Floats, SeedFacts, StepFacts
from workers.reward_terms.potential import birth_bonus
from workers.vocabulary import FOSSILIZED, HOLDING, UNKNOWN, Op

Values = NDArray[np.floating[Any]] | float
_BLANKS: dict[str, float] = {
    "stage": UNKNOWN, "previous_stage": UNKNOWN, "epochs_in_stage": 0, "age": 0, "contribution": np.nan,
    "total_improvement": np.nan, "interaction_sum": np.nan, "acc_at_germination": np.nan,
}  # fmt: skip


def blank_absent(seeds: SeedFacts) -> SeedFacts:
    """Return the facts [E, S] with empty slots made neutral: stage UNKNOWN, counts 0, measurements NaN.

    Leftover entries of an empty slot can then neither affect a reward nor raise a numpy warning. `potential_before` is
    kept, because slots that just lost their seed repay it.
    """
    blanked = {name: np.where(seeds.present, getattr(seeds, name), blank) for name, blank in _BLANKS.items()}
    return replace(seeds, **blanked)


def acted_on(facts: StepFacts, op: Op) -> Bools:
    """Return [E, S]: True in the one slot on which this environment's decision is `op`, False everywhere else."""
    slots = np.arange(facts.seeds.present.shape[1])
    mask: Bools = (facts.op == int(op))[:, None] & (facts.slot[:, None] == slots)
    return mask


def first_of(*cases: tuple[Bools, Values], otherwise: Values) -> Floats:
    """Return elementwise the value of the first true condition; like np.select at a tenth of its cost here."""
    chosen: Floats = np.asarray(otherwise, dtype=np.float64)
    for condition, value in reversed(cases):
        chosen = np.where(condition, value, chosen)
    return chosen


_MAX_EXPONENT = 700.0  # exp() of a float64 overflows a little above
_SUSPICIOUS_CONTRIBUTION = 1.0  # points; smaller ones are never penalised
_FULL_PENALTY_CONTRIBUTION = 10.0  # points
_UNKNOWN_START_SHARE = 0.5  # share of the contribution earned when the accuracy at germination is unknown


def discount(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the discount [E, S] in (0, 1]: below 1 for measured seeds in a network below its all-off accuracy."""
    improvement = seeds.total_improvement
    exponent = np.minimum(-settings.attribution_sigmoid_steepness * improvement, _MAX_EXPONENT)
    falling = ~np.isnan(seeds.contribution) & (improvement < 0)
    return np.where(falling, 1.0 / (1.0 + np.exp(exponent)), 1.0)


def ratio_penalty(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return a penalty [E, S], <= 0, for a contribution out of proportion to the improvement.

    That disproportion marks a seed on which the host has become dependent.
    """
    if settings.disable_anti_gaming:
        return np.zeros_like(seeds.contribution)
    contribution, improvement = seeds.contribution, seeds.total_improvement
    threshold, penalty = settings.hacking_ratio_threshold, settings.prune_good_seed_penalty
    clear = improvement > max(settings.improvement_safe_threshold, 1e-8)
    ratio = np.divide(contribution, improvement, out=np.zeros_like(contribution), where=clear)
    excess = np.where(ratio > threshold, -np.minimum(-penalty, 0.1 * (ratio - threshold) / threshold), 0.0)
    unearned = penalty * np.minimum(1.0, contribution / _FULL_PENALTY_CONTRIBUTION)
    suspicious = (contribution > _SUSPICIOUS_CONTRIBUTION) & (discount(seeds, settings) >= 0.5)
    flat = improvement <= settings.improvement_safe_threshold
    return np.where(suspicious, first_of((clear, excess), (flat, unearned), otherwise=0.0), 0.0)


def attribution(facts: StepFacts, seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the attribution B [E, S] of `seeds` (the facts' own, absent entries blanked); fossils and empty slots: 0.

    FOSSILIZE of a seed in a network below its all-off accuracy earns nothing; PRUNE earns the negative of B.
    """
    unmeasured = np.isnan(seeds.contribution)
    live = seeds.present & (seeds.stage != FOSSILIZED)
    proxy = _proxy(facts, live & unmeasured, settings)
    bounded = np.where(live, np.where(unmeasured, proxy, _of_measured(facts, seeds, settings)), 0.0)
    bounded = np.where(acted_on(facts, Op.FOSSILIZE) & (seeds.total_improvement < 0), 0.0, bounded)
    return np.where(acted_on(facts, Op.PRUNE), -bounded, bounded)


def _of_measured(facts: StepFacts, seeds: SeedFacts, settings: RewardSettings) -> Floats:
    contribution = seeds.contribution
    progress = facts.val_acc[:, None] - seeds.acc_at_germination
    geometric_mean = np.sqrt(np.maximum(progress, 0.0) * np.maximum(contribution, 0.0))
    earned = first_of(
        (np.isnan(progress), _UNKNOWN_START_SHARE * contribution), (progress <= 0, 0.0),
        (contribution >= progress, geometric_mean), otherwise=contribution,
    )
    weight = settings.contribution_weight
    helping = weight * earned * discount(seeds, settings) + ratio_penalty(seeds, settings)
    return np.where(contribution < 0, weight * contribution, helping)


def _proxy(facts: StepFacts, unmeasured: Bools, settings: RewardSettings) -> Floats:
    """Return the proxy of unmeasured seeds, [E, 1].

    A network has one accuracy change: unmeasured seeds share it, so that more of them do not earn more.
    """
    gain = np.where(facts.acc_delta > 0, facts.acc_delta, 0.0)
    share = gain / np.maximum(unmeasured.sum(axis=1), 1)
    proxy: Floats = settings.contribution_weight * settings.proxy_confidence_factor * share[:, None]
    return proxy


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
