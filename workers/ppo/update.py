"""The PPO update: several epochs over whole sequences, in minibatches of sequences. Independent of tasks and rollouts.

The update stops before, not after, a step that would start beyond the target KL. Each step is `ActorCritic.learn`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from esper_ab.contracts.records import HeadUse, PPOUpdate, finite
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PPOSettings
from workers.actor_critic import ActorCritic, Batch, Learnt, UpdateRule
from workers.arrays import Floats, Ints
from workers.ppo.normalise import normalise_advantages

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
        value_clip=settings.value_clip,
        adam_eps=settings.adam_eps,
    )


def ppo_update(policy: ActorCritic, batch: Batch, settings: PPOSettings, rule: UpdateRule, rng: RngPath) -> PPOUpdate:
    """Update the policy in place; `rng` determines the order of sequences in each epoch.

    Stops before a step whose minibatch is beyond the target KL, and before a step whose gradient is not finite. In the
    record, numbers that are not finite are None. `advantage_std` and `return_mean` are left to the caller, because the
    batch is not in reward units. Heads are named by position, "0", "1", …; continuous decisions have no heads.
    """
    diagnosis_before = _diagnose(policy, batch)
    learning_steps: list[Learnt] = []
    epochs_done = 0
    stopped_by_kl = False
    for sequences, last_of_epoch in _minibatches(batch, settings, rng):
        minibatch = batch
        if settings.normalise_advantages == "minibatch":
            minibatch = _normalise_minibatch(batch, sequences)
        learning_step = policy.learn(minibatch, sequences, rule)
        learning_steps.append(learning_step)
        stopped_by_kl = learning_step.kl > rule.target_kl
        if not learning_step.stepped:
            break
        epochs_done += last_of_epoch
    norms = [learning_step.grad_norm for learning_step in learning_steps if learning_step.grad_norm is not None]
    return msgspec.structs.replace(
        diagnosis_before,
        policy_loss=_mean([learning_step.policy_loss for learning_step in learning_steps]),
        value_loss=_mean([learning_step.value_loss for learning_step in learning_steps]),
        approx_kl=_mean([learning_step.kl for learning_step in learning_steps]),
        clip_fraction=_mean([learning_step.clip_fraction for learning_step in learning_steps]),
        grad_norm=_mean(norms),
        ratio_max=finite(max(learning_step.ratio_max for learning_step in learning_steps)),
        epochs_done=epochs_done,
        stopped_by_kl=stopped_by_kl,
    )


@np.errstate(over="ignore", invalid="ignore")  # a number that is not finite is recorded as None
def _diagnose(policy: ActorCritic, batch: Batch) -> PPOUpdate:
    """Return the diagnostics of the policy before the first step, over the whole batch."""
    evaluation = policy.evaluate(batch)
    ratio_error = np.abs(np.exp(evaluation.log_probs - batch.log_probs[batch.valid]) - 1.0).max()
    sizes = np.array(policy.shape.head_sizes, dtype=np.int64)
    if batch.masks is None:
        counts = np.tile(sizes, (len(evaluation.values), 1))
    else:
        counts = batch.masks[batch.valid].sum(-1)
    head_uses = _head_uses(evaluation.entropies, counts) if len(sizes) else ()
    return PPOUpdate(
        entropy=finite(float(evaluation.entropies.sum(-1).mean())),
        op_entropy=finite(float(evaluation.entropies[:, 0].mean())),
        first_ratio_error=finite(float(ratio_error)),
        explained_variance=_explained_variance(batch),
        heads={str(position): use for position, use in enumerate(head_uses)},
    )


def _head_uses(entropies: Floats, counts: Ints) -> tuple[HeadUse, ...]:
    """Return each head's use, from entropies and numbers of valid choices, both [N, heads]; a uniform entropy is 1."""
    chose = counts > 1
    sums = np.where(chose, entropies / np.log(np.maximum(counts, 2)), 0.0).sum(0)
    head_uses = []
    for total, steps in zip(sums.tolist(), chose.sum(0).tolist(), strict=True):
        entropy = finite(total / steps) if steps else None
        head_uses.append(HeadUse(entropy=entropy, learnable=steps / len(counts)))
    return tuple(head_uses)


def _minibatches(batch: Batch, settings: PPOSettings, rng: RngPath) -> Iterator[tuple[Ints, bool]]:
    """Yield every epoch's minibatches of sequences in a fresh order, each with True if it is the last of its epoch.

    Sequences without a valid step are left out, because alone in a minibatch they would have no mean.
    """
    living_columns = np.flatnonzero(batch.valid.any(0))
    parts = min(settings.minibatches, len(living_columns))
    for epoch in range(settings.epochs):
        order = (rng / epoch).generator().permutation(living_columns)
        for index, envs in enumerate(np.array_split(order, parts)):
            yield envs, index == parts - 1


def _normalise_minibatch(batch: Batch, sequences: Ints) -> Batch:
    """Return the batch with advantages of mean 0 and SD 1 over the valid steps of some sequences."""
    chosen_mask = np.zeros_like(batch.valid)
    chosen_mask[:, sequences] = batch.valid[:, sequences]
    return replace(batch, advantages=normalise_advantages(batch.advantages, batch.advantages, chosen_mask)[0])


def _explained_variance(batch: Batch) -> float | None:
    """Return 1 - Var(return - value) / Var(return) for the critic that acted; None if returns do not vary."""
    returns = batch.returns[batch.valid]
    variance = float(returns.var())
    if variance < _MIN_VARIANCE:
        return None
    unexplained_variance = float((returns - batch.values[batch.valid]).var())
    return finite(1.0 - unexplained_variance / variance)


def _mean(numbers: Sequence[float]) -> float | None:
    if not numbers:
        return None
    return finite(sum(numbers) / len(numbers))
