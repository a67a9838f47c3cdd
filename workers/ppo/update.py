"""The PPO update: several epochs over whole sequences, in minibatches of sequences. Independent of tasks and rollouts.

The update stops before, not after, a step that would start beyond the target KL. Each step is `ActorCritic.learn`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from esper_ab.contracts.records import HeadUse, PPOUpdate, finite
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PPOSettings
from workers.actor_critic import ActorCritic, Batch, Learnt, UpdateRule
from workers.arrays import Floats, Ints

_MIN_VARIANCE = 1e-8  # of returns in the critic's units, in which all returns so far have variance 1


def rule_of(settings: PPOSettings, episode: int, planned_episodes: int) -> UpdateRule:
    """Return the rule for an episode's minibatches.

    From episode 0 to the last planned one, the entropy coefficient changes linearly from `entropy_coef` to
    `entropy_coef_end`, and the learning rate from `lr` to `lr_end` times `lr`. After that both are constant.
    """
    progress = min(1.0, episode / max(1, planned_episodes - 1))
    return UpdateRule(
        clip=settings.clip,
        value_coef=settings.value_coef,
        max_grad_norm=settings.max_grad_norm,
        target_kl=settings.target_kl,
        lr=settings.lr * (1.0 - (1.0 - settings.lr_end) * progress),
        entropy_coef=settings.entropy_coef + (settings.entropy_coef_end - settings.entropy_coef) * progress,
    )


def ppo_update(policy: ActorCritic, batch: Batch, settings: PPOSettings, rule: UpdateRule, rng: RngPath) -> PPOUpdate:
    """Update the policy in place; `rng` determines the order of sequences in each epoch.

    Stops before a step whose minibatch is beyond the target KL, and before a step whose gradient is not finite. In the
    record, numbers that are not finite are None. `advantage_std` and `return_mean` are left to the caller, because the
    batch is not in reward units. Heads are named by position, "0", "1", …; continuous decisions have no heads.
    """
    before = _diagnose(policy, batch)
    seen: list[Learnt] = []
    epochs_done = 0
    stopped_by_kl = False
    for sequences, last_of_epoch in _minibatches(batch, settings, rng):
        learnt = policy.learn(batch, sequences, rule)
        seen.append(learnt)
        stopped_by_kl = learnt.kl > rule.target_kl
        if not learnt.stepped:
            break
        epochs_done += last_of_epoch
    norms = [learnt.grad_norm for learnt in seen if learnt.grad_norm is not None]
    return msgspec.structs.replace(
        before,
        policy_loss=_mean([learnt.policy_loss for learnt in seen]),
        value_loss=_mean([learnt.value_loss for learnt in seen]),
        approx_kl=_mean([learnt.kl for learnt in seen]),
        clip_fraction=_mean([learnt.clip_fraction for learnt in seen]),
        grad_norm=_mean(norms),
        ratio_max=finite(max(learnt.ratio_max for learnt in seen)),
        epochs_done=epochs_done,
        stopped_by_kl=stopped_by_kl,
    )


@np.errstate(over="ignore", invalid="ignore")  # a number that is not finite is recorded as None
def _diagnose(policy: ActorCritic, batch: Batch) -> PPOUpdate:
    """Return the diagnostics of the policy before the first step, over the whole batch."""
    now = policy.evaluate(batch)
    ratio_error = np.abs(np.exp(now.log_probs - batch.log_probs[batch.valid]) - 1.0).max()
    sizes = np.array(policy.shape.head_sizes, dtype=np.int64)
    if batch.masks is None:
        counts = np.tile(sizes, (len(now.values), 1))
    else:
        counts = batch.masks[batch.valid].sum(-1)
    uses = _head_uses(now.entropies, counts) if len(sizes) else ()
    return PPOUpdate(
        entropy=finite(float(now.entropies.sum(-1).mean())),
        op_entropy=finite(float(now.entropies[:, 0].mean())),
        first_ratio_error=finite(float(ratio_error)),
        explained_variance=_explained_variance(batch),
        heads={str(position): use for position, use in enumerate(uses)},
    )


def _head_uses(entropies: Floats, counts: Ints) -> tuple[HeadUse, ...]:
    """Return each head's use, from entropies and numbers of valid choices, both [N, heads]; a uniform entropy is 1."""
    chose = counts > 1
    sums = np.where(chose, entropies / np.log(np.maximum(counts, 2)), 0.0).sum(0)
    uses = []
    for total, steps in zip(sums.tolist(), chose.sum(0).tolist(), strict=True):
        entropy = finite(total / steps) if steps else None
        uses.append(HeadUse(entropy=entropy, learnable=steps / len(counts)))
    return tuple(uses)


def _minibatches(batch: Batch, settings: PPOSettings, rng: RngPath) -> Iterator[tuple[Ints, bool]]:
    """Yield every epoch's minibatches of sequences in a fresh order, each with True if it is the last of its epoch.

    Sequences without a valid step are left out, because alone in a minibatch they would have no mean.
    """
    lived = np.flatnonzero(batch.valid.any(0))
    parts = min(settings.minibatches, len(lived))
    for epoch in range(settings.epochs):
        order = (rng / epoch).generator().permutation(lived)
        for index, envs in enumerate(np.array_split(order, parts)):
            yield envs, index == parts - 1


def _explained_variance(batch: Batch) -> float | None:
    """Return 1 - Var(return - value) / Var(return) for the critic that acted; None if returns do not vary."""
    returns = batch.returns[batch.valid]
    variance = float(returns.var())
    if variance < _MIN_VARIANCE:
        return None
    unexplained = float((returns - batch.values[batch.valid]).var())
    return finite(1.0 - unexplained / variance)


def _mean(numbers: Sequence[float]) -> float | None:
    if not numbers:
        return None
    return finite(sum(numbers) / len(numbers))
