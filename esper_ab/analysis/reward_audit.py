"""Conclusions from a reward audit: for each reward, the cost of choosing by it, and the pairs that it misranks.

Behaviours are random schedules and reference behaviours. The random schedules are a sample of possible behaviours, and
best of n uses only them. Misranked pairs, regret and distance use all behaviours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from esper_ab.contracts.reward_audit import FoundBehaviour, Played, RewardAudit, Scored, Varied
from esper_ab.stats.correlation import correlation
from esper_ab.stats.floats import Bools, Floats
from esper_ab.stats.selection import Misranked, best_of_n, linear_distance, regret, worst_pairs

PAIRS = 3  # misranked pairs to report per reward
LARGEST_N = 64


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """Effect of one altered constant on the order of all behaviours, and on the favourite among random schedules."""

    varied: Varied
    order: float | None  # rank correlation with the unaltered returns; None: value refused, or all returns are equal
    favourite_change: float | None  # change in outcome of the favourite among random schedules, points; None: refused


@dataclass(frozen=True, kw_only=True)
class RewardFindings:
    """Findings on one reward. Outcomes are held-out accuracy, percent; losses and distances are points."""

    name: str
    returns: Floats  # by behaviour, mean over hosts
    curve: Floats  # expected outcome of the reward's favourite among n random schedules, n = 1 …
    regret: float  # against the best of all behaviours
    favourite: int  # among all behaviours; the first one if several share the highest return
    rank_correlation: float | None  # between returns and outcomes of random schedules
    pairs: tuple[Misranked, ...]
    distance: float
    spread: float  # SD of the returns of random schedules, in the reward's own unit
    largest: float  # magnitude of the largest reward of a step, in the reward's own unit
    half_paid: int | None  # step by which half of the total magnitude has been paid; None: nothing is ever paid
    on_last_step: float | None  # share of the total magnitude
    paid: Floats  # share of the total magnitude paid up to each step; zeros if nothing is ever paid
    sensitivity: tuple[Sensitivity, ...]  # largest effect on the favourite first
    found: FoundBehaviour | None


@dataclass(frozen=True, kw_only=True)
class RewardAuditFindings:
    """Findings on all rewards of a reward audit."""

    reward_audit: RewardAudit
    outcomes: Floats  # by behaviour, mean over hosts
    own_curve: Floats  # expected outcome of the best of n random schedules
    rewards: tuple[RewardFindings, ...]

    @property
    def behaviours(self) -> tuple[Played, ...]:
        return self.reward_audit.answer.behaviours

    @property
    def shown_n(self) -> tuple[int, ...]:
        """The values of n that a table shows."""
        longest_n = len(self.own_curve)
        return (*(n for n in (1, 4, 16, LARGEST_N) if n < longest_n), longest_n)


def findings_of(reward_audit: RewardAudit) -> RewardAuditFindings:
    """Derive the findings from a reward audit alone."""
    behaviours = reward_audit.answer.behaviours
    outcomes = np.array([np.mean(behaviour.held_out_accuracy) for behaviour in behaviours])
    random_mask = np.array([behaviour.kind == "random" for behaviour in behaviours])
    return RewardAuditFindings(
        reward_audit=reward_audit,
        outcomes=outcomes,
        own_curve=_curve(outcomes[random_mask], outcomes[random_mask]),
        rewards=tuple(
            _judge_reward(scored_reward, outcomes, random_mask) for scored_reward in reward_audit.answer.scored
        ),
    )


def _curve(returns: Floats, outcomes: Floats) -> Floats:
    return best_of_n(returns, outcomes)[:LARGEST_N]


def _judge_reward(scored_reward: Scored, outcomes: Floats, random_mask: Bools) -> RewardFindings:
    returns = np.array([np.mean(hosts) for hosts in scored_reward.returns])
    spread = 0.0
    if random_mask.sum() > 1:
        spread = float(np.std(returns[random_mask], ddof=1))
    by_step = np.array(scored_reward.by_step)
    total = by_step.sum()
    paid_shares = np.zeros_like(by_step)
    half_paid_step = None
    last_step_share = None
    if total:
        paid_shares = np.cumsum(by_step) / total
        half_paid_step = int(np.searchsorted(paid_shares, 0.5 - 1e-12)) + 1
        last_step_share = float(by_step[-1] / total)
    return RewardFindings(
        name=scored_reward.reward.name,
        returns=returns,
        curve=_curve(returns[random_mask], outcomes[random_mask]),
        regret=regret(returns, outcomes),
        favourite=int(returns.argmax()),
        rank_correlation=correlation(returns[random_mask], outcomes[random_mask]).spearman,
        pairs=worst_pairs(returns, outcomes, PAIRS),
        distance=linear_distance(returns, outcomes),
        spread=spread,
        largest=scored_reward.largest,
        half_paid=half_paid_step,
        on_last_step=last_step_share,
        paid=paid_shares,
        sensitivity=_sensitivity(scored_reward, returns, outcomes, random_mask),
        found=scored_reward.found,
    )


def _sensitivity(
    scored_reward: Scored, returns: Floats, outcomes: Floats, random_mask: Bools
) -> tuple[Sensitivity, ...]:
    best_outcome = outcomes[random_mask].max()
    outcome_before = best_outcome - regret(returns[random_mask], outcomes[random_mask])
    effects = []
    for variation in scored_reward.varied:
        if not variation.returns:
            effects.append(Sensitivity(varied=variation, order=None, favourite_change=None))
            continue
        altered_returns = np.array(variation.returns)
        outcome_after = best_outcome - regret(altered_returns[random_mask], outcomes[random_mask])
        order = correlation(altered_returns, returns).spearman
        effects.append(
            Sensitivity(varied=variation, order=order, favourite_change=float(outcome_after - outcome_before))
        )
    return tuple(sorted(effects, key=_largest_effect_first))


def _largest_effect_first(effect: Sensitivity) -> tuple[float, float]:
    return -abs(effect.favourite_change or 0.0), effect.order or 0.0
