"""Terms of the SHAPED reward, some of which other modes share: potential, per-seed terms, loss family.

The potential over a seed's life shapes rewards (Ng, Harada, Russell 1999) and is independent of the other terms.
docs/internals/rewards.md, "How the potential telescopes", explains a seed's first and last step.

`attribution` is the bounded reward for a seed's measured contribution; `action_shaping` is the price of the decision
itself. Branches for decisions that the masks forbid are kept so that the function is total and can be checked against
the golden cases of the reference system (tests/golden).

The loss family, for SHAPED with `family = "loss"`, rewards a falling validation loss. Positive `loss_delta` is an
improvement and is rewarded; the reference system (docs/internals/rewards.md) has the wrong sign here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts.settings import RewardSettings
from workers.kinds.growth.facts import Bools, Floats, Ints, SeedFacts, StepFacts
from workers.kinds.growth.vocabulary import FOSSILIZED, HOLDING, UNKNOWN, Op, Stage

_OF_STAGE = {Stage.GERMINATED: 1.0, Stage.TRAINING: 2.0, Stage.BLENDING: 3.5, Stage.HOLDING: 5.5, Stage.FOSSILIZED: 6.0}
_TABLE = np.zeros(max(Stage) + 1)
_TABLE[list(_OF_STAGE)] = list(_OF_STAGE.values())


def stage_potential(stage: Ints) -> Floats:
    """Return P(stage), of any shape: 0 for empty and cooling slots, rising to 6 for a fossil."""
    potentials: Floats = _TABLE[stage]
    return potentials


def potential(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return Phi [E, S] = P(stage) + min(epochs_in_stage * epoch_progress_bonus, max_progress_bonus).

    Phi is 0 where there is no seed. The code that builds the facts stores Phi at every decision and passes it as
    `potential_before` at the next decision.
    """
    stage = np.where(seeds.present, seeds.stage, UNKNOWN)
    progress = np.minimum(seeds.epochs_in_stage * settings.epoch_progress_bonus, settings.max_progress_bonus)
    return np.where(seeds.present, stage_potential(stage) + progress, 0.0)


def pbrs(seeds: SeedFacts, potential_before: Floats, settings: RewardSettings) -> Floats:
    """Return pbrs_weight * (gamma * Phi - potential_before), [E, S]; 0 if disabled.

    A slot that lost its seed repays `potential_before`.
    """
    if settings.disable_pbrs:
        return np.zeros_like(potential_before)
    return settings.pbrs_weight * (settings.gamma * potential(seeds, settings) - potential_before)


def birth_bonus(settings: RewardSettings) -> float:
    """Return the bonus paid at once for a germination: pbrs_weight * gamma * P(GERMINATED); 0 if disabled."""
    if settings.disable_pbrs:
        return 0.0
    return settings.pbrs_weight * settings.gamma * _OF_STAGE[Stage.GERMINATED]


def before_with_birth(seeds: SeedFacts) -> Floats:
    """Return `potential_before` [E, S] for a mode that paid `birth_bonus` when GERMINATE was sampled.

    A seed of age 1 did not exist at the previous decision, so the potential stored for its slot is 0. As the bonus has
    paid for P(GERMINATED), this function replaces that 0 by P(GERMINATED), to prevent a second payment.
    """
    newborn_mask = seeds.present & (seeds.age == 1)
    birth_potential = np.maximum(seeds.potential_before, _OF_STAGE[Stage.GERMINATED])
    return np.where(newborn_mask, birth_potential, seeds.potential_before)


Values = NDArray[np.floating[Any]] | float
_BLANKS: dict[str, float] = {
    "stage": UNKNOWN,
    "previous_stage": UNKNOWN,
    "epochs_in_stage": 0,
    "age": 0,
    "contribution": np.nan,
    "total_improvement": np.nan,
    "interaction_sum": np.nan,
    "acc_at_germination": np.nan,
}


def blank_absent(seeds: SeedFacts) -> SeedFacts:
    """Return the facts [E, S] with empty slots made neutral: stage UNKNOWN, counts 0, measurements NaN.

    This keeps leftover entries of an empty slot from affecting a reward or raising a numpy warning. `potential_before`
    is kept, because slots that just lost their seed repay it.
    """
    blanked_arrays = {
        name: np.where(seeds.present, getattr(seeds, name), blank_value) for name, blank_value in _BLANKS.items()
    }
    return replace(seeds, **blanked_arrays)


def acted_on(facts: StepFacts, op: Op) -> Bools:
    """Return a mask [E, S], True in the slot where this environment's decision applies `op`."""
    slots = np.arange(facts.seeds.present.shape[1])
    mask: Bools = (facts.op == int(op))[:, None] & (facts.slot[:, None] == slots)
    return mask


def first_of(*cases: tuple[Bools, Values], default: Values) -> Floats:
    """Return, elementwise, the value of the first true condition: np.select, but ten times faster here."""
    chosen_values: Floats = np.asarray(default, dtype=np.float64)
    for condition, value in reversed(cases):
        chosen_values = np.where(condition, value, chosen_values)
    return chosen_values


_MAX_EXPONENT = 700.0  # exp() of a float64 overflows a little above
_SUSPICIOUS_CONTRIBUTION = 1.0  # points; smaller ones are never penalised
_FULL_PENALTY_CONTRIBUTION = 10.0  # points
_UNKNOWN_START_SHARE = 0.5  # share of the contribution earned when the accuracy at germination is unknown


def discount(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the discount [E, S] in (0, 1]: less than 1 for measured seeds of a network below its all-off accuracy."""
    improvement = seeds.total_improvement
    exponent = np.minimum(-settings.attribution_sigmoid_steepness * improvement, _MAX_EXPONENT)
    falling_mask = ~np.isnan(seeds.contribution) & (improvement < 0)
    return np.where(falling_mask, 1.0 / (1.0 + np.exp(exponent)), 1.0)


def ratio_penalty(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the penalty [E, S], <= 0, for a contribution out of proportion to the improvement.

    Such a disproportion marks a seed on which the host has become dependent.
    """
    if settings.disable_anti_gaming:
        return np.zeros_like(seeds.contribution)
    contribution = seeds.contribution
    improvement = seeds.total_improvement
    threshold = settings.hacking_ratio_threshold
    penalty = settings.prune_good_seed_penalty
    clear = improvement > max(settings.improvement_safe_threshold, 1e-8)
    ratio = np.divide(contribution, improvement, out=np.zeros_like(contribution), where=clear)
    excess_beyond = 0.1 * (ratio - threshold) / threshold
    excess = np.where(ratio > threshold, -np.minimum(-penalty, excess_beyond), 0.0)
    unearned_penalty = penalty * np.minimum(1.0, contribution / _FULL_PENALTY_CONTRIBUTION)
    suspicious_mask = (contribution > _SUSPICIOUS_CONTRIBUTION) & (discount(seeds, settings) >= 0.5)
    flat = improvement <= settings.improvement_safe_threshold
    due_penalty = first_of((clear, excess), (flat, unearned_penalty), default=0.0)
    return np.where(suspicious_mask, due_penalty, 0.0)


def attribution(facts: StepFacts, seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the attribution B [E, S] of `seeds`, which are the seeds of `facts` with absent entries blanked.

    B is 0 for fossils and empty slots. FOSSILIZE earns nothing while the network is below its all-off accuracy; PRUNE
    earns -B.
    """
    unmeasured_mask = np.isnan(seeds.contribution)
    live_mask = seeds.present & (seeds.stage != FOSSILIZED)
    proxy = _proxy(facts, live_mask & unmeasured_mask, settings)
    live_pay = np.where(unmeasured_mask, proxy, _pay_measured(facts, seeds, settings))
    bounded_pay = np.where(live_mask, live_pay, 0.0)
    bounded_pay = np.where(acted_on(facts, Op.FOSSILIZE) & (seeds.total_improvement < 0), 0.0, bounded_pay)
    return np.where(acted_on(facts, Op.PRUNE), -bounded_pay, bounded_pay)


def _pay_measured(facts: StepFacts, seeds: SeedFacts, settings: RewardSettings) -> Floats:
    contribution = seeds.contribution
    progress = facts.val_acc[:, None] - seeds.acc_at_germination
    geometric_mean = np.sqrt(np.maximum(progress, 0.0) * np.maximum(contribution, 0.0))
    earned_share = first_of(
        (np.isnan(progress), _UNKNOWN_START_SHARE * contribution),
        (progress <= 0, 0.0),
        (contribution >= progress, geometric_mean),
        default=contribution,
    )
    weight = settings.contribution_weight
    helping_pay = weight * earned_share * discount(seeds, settings) + ratio_penalty(seeds, settings)
    return np.where(contribution < 0, weight * contribution, helping_pay)


def _proxy(facts: StepFacts, unmeasured_mask: Bools, settings: RewardSettings) -> Floats:
    """Return the proxy of unmeasured seeds, [E, 1].

    A network has only one accuracy change. Unmeasured seeds share this change, so that having more of them earns no
    more.
    """
    gain = np.where(facts.acc_delta > 0, facts.acc_delta, 0.0)
    share = gain / np.maximum(unmeasured_mask.sum(axis=1), 1)
    proxy: Floats = settings.contribution_weight * settings.proxy_confidence_factor * share[:, None]
    return proxy


_MIN_CONTRIBUTION = 1.0  # points a seed must contribute for its fossilisation to be rewarded
_SETTLED_EPOCHS = 5  # epochs in HOLDING for the full bonus
_MIN_PRUNE_AGE = 1
_TOO_YOUNG_PENALTY = -0.3
_PRUNE_NOTHING_PENALTY = -0.2


def action_shaping(facts: StepFacts, seeds: SeedFacts, settings: RewardSettings) -> Floats:
    """Return the price of each decision, [E]; WAIT and ADVANCE cost 0.

    `seeds`: the seeds of `facts`, with absent entries blanked.
    """
    total = np.zeros(len(facts.op))
    decided_ops = set(facts.op.tolist())
    for op, price in _PRICES.items():
        if op in decided_ops:
            total += np.where(acted_on(facts, op), price(seeds, settings), 0.0).sum(axis=1)
    return total


def _germinate(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    price = np.where(seeds.present, settings.germinate_with_seed_penalty, birth_bonus(settings))
    return np.asarray(price + settings.germinate_cost)


def _set_alpha_target(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    return np.full(seeds.present.shape, settings.set_alpha_target_cost)


def _fossilize(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    contribution = seeds.contribution
    improvement = seeds.total_improvement
    harmful_penalty = -0.5 - np.minimum(0.2 * np.abs(improvement), 1.0)
    disguised_mask = (contribution > 0.1) & (improvement < -0.2)
    settled_share = np.minimum(1.0, seeds.epochs_in_stage / _SETTLED_EPOCHS)
    bonus = (settings.fossilize_base_bonus + settings.fossilize_contribution_scale * contribution) * settled_share
    price = first_of(
        (seeds.stage != HOLDING, settings.invalid_fossilize_penalty),
        (improvement < 0, harmful_penalty - 0.3 * disguised_mask),
        (contribution >= _MIN_CONTRIBUTION, bonus),
        default=settings.fossilize_noncontributing_penalty,
    )
    return price + settings.fossilize_cost


def _prune(seeds: SeedFacts, settings: RewardSettings) -> Floats:
    contribution = seeds.contribution
    loss = settings.prune_good_seed_penalty
    useful_penalty = np.maximum(loss - 0.05 * contribution, 3.0 * loss)
    price = first_of(
        (~seeds.present, _PRUNE_NOTHING_PENALTY),
        (seeds.stage == FOSSILIZED, settings.prune_fossilized_penalty),
        (seeds.age < _MIN_PRUNE_AGE, _TOO_YOUNG_PENALTY * (_MIN_PRUNE_AGE - seeds.age)),
        (contribution < settings.prune_hurting_threshold, settings.prune_hurting_bonus),
        (contribution < 0, settings.prune_acceptable_bonus),
        (contribution >= 0, useful_penalty),
        default=0.0,
    )
    return price + settings.prune_cost


_PRICES: dict[Op, Callable[[SeedFacts, RewardSettings], Floats]] = {
    Op.GERMINATE: _germinate,
    Op.SET_ALPHA_TARGET: _set_alpha_target,
    Op.PRUNE: _prune,
    Op.FOSSILIZE: _fossilize,
}


def loss_family(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the reward [E]. At the first step, the change of loss is NaN and counts as 0."""
    total = _loss_change(facts, settings) - _rent(facts, settings)
    if not settings.disable_pbrs:
        total = total + _stage_bonus(facts, settings)
    if facts.step == facts.steps and not settings.disable_terminal_reward:
        total = total + _terminal(facts, settings)
    return total


def _loss_change(facts: StepFacts, settings: RewardSettings) -> Floats:
    limit = settings.max_loss_delta
    z = np.clip(facts.loss_delta / settings.typical_loss_delta_std, -limit, limit)
    softened_change = np.where(z < 0, settings.regression_penalty_scale * z, z)
    return np.where(np.isnan(z), 0.0, settings.loss_delta_weight * softened_change)


def _rent(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return the rent [E]; waived while every module present is within its grace period.

    Exempting newcomers individually would let them shelter old modules.
    """
    seeds = facts.seeds
    settled_mask = seeds.present & (seeds.age >= settings.grace_epochs)
    grace_mask = seeds.present.any(axis=1) & ~settled_mask.any(axis=1)
    added_params = (facts.total_params - facts.host_params).astype(np.float64)
    due_mask = (facts.host_params > 0) & (added_params > 0) & ~grace_mask
    growth = np.divide(added_params, facts.host_params, out=np.zeros_like(added_params), where=due_mask)
    return np.minimum(settings.compute_rent_weight * np.log1p(growth), settings.max_rent_penalty)


def _stage_bonus(facts: StepFacts, settings: RewardSettings) -> Floats:
    """Return gamma * P(stage) - P(previous stage) at every step; it favours late stages and does not telescope."""
    seeds = blank_absent(facts.seeds)
    change = settings.gamma * stage_potential(seeds.stage) - stage_potential(seeds.previous_stage)
    total: Floats = settings.stage_potential_weight * change.sum(axis=1)
    return total


def _terminal(facts: StepFacts, settings: RewardSettings) -> Floats:
    span = settings.baseline_loss - settings.target_loss
    if span != 0:
        loss_share = (settings.baseline_loss - facts.val_loss) / span
    else:
        loss_share = np.ones_like(facts.val_loss)
    return settings.terminal_loss_weight * np.clip(loss_share, 0.0, 1.0)
