"""Bounded attribution of SHAPED: the reward for a seed's measured contribution. Independent of other reward terms."""

from __future__ import annotations

import numpy as np

from esper_ab.contracts.settings import RewardSettings
from workers.facts import Bools, Floats, SeedFacts, StepFacts
from workers.reward_terms.slots import acted_on, first_of
from workers.vocabulary import FOSSILIZED, Op

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
