"""The PPO update: several epochs over whole sequences, minibatched by sequence. Knows neither growth nor rollouts.

Clipped surrogate (Schulman et al. 2017, arXiv:1707.06347, equation 7) on the ratio of joint probabilities and on
normalised advantages; value loss on normalised returns; entropy bonus per decision; stop at the target KL before, not
after, the step that would start beyond it (KL estimate: Schulman, "Approximating KL divergence", 2020). The optimiser
is Adam as torch computes it, without torch's class.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from esper_ab.contracts.records import HeadUse, PPOUpdate, finite
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import PPOSettings
from workers.ppo.distributions import (
    head_entropies,
    joint_log_prob,
    masked_log_softmax,
    normal_entropies,
    normal_log_prob,
    normalised_entropies,
)
from workers.ppo.policy import ActorCritic

_BETAS = (0.9, 0.999)
_KEPT = ("step", "exp_avg", "exp_avg_sq")  # per parameter: updates so far, running means of gradient and its square


class Adam:
    """Optimiser of `parameters` from their gradients."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, eps: float) -> None:
        self._parameters = list(parameters)
        self.lr = lr  # of the next steps; may be set
        self._eps = eps
        self._state: list[dict[str, Tensor]] = []  # per parameter; empty before the first step

    def zero_grad(self) -> None:
        """Clear all gradients."""
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Perform one update; every parameter must have a gradient."""
        gradients = [parameter.grad for parameter in self._parameters if parameter.grad is not None]
        assert len(gradients) == len(self._parameters), "a parameter without a gradient"
        if not self._state:
            self._state = [
                {
                    "step": torch.zeros((), dtype=torch.float32),
                    "exp_avg": torch.zeros_like(parameter), "exp_avg_sq": torch.zeros_like(parameter),
                }
                for parameter in self._parameters
            ]
        steps, means, squares = ([state[name] for state in self._state] for name in _KEPT)
        adam(
            list[Tensor](self._parameters), gradients, means, squares, [], steps, fused=True, amsgrad=False,
            beta1=_BETAS[0], beta2=_BETAS[1], lr=self.lr, weight_decay=0.0, eps=self._eps, maximize=False,
        )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """Return copies of update counts and running means, laid out as `state` in torch.optim.Adam's state_dict."""
        return {"state": {i: {k: v.clone() for k, v in state.items()} for i, state in enumerate(self._state)}}

    def load(self, state: dict[str, Any]) -> None:
        """Continue from `state`, of this class or of torch.optim.Adam; LookupError for another number of parameters."""
        found = state["state"]
        if found and len(found) != len(self._parameters):
            raise LookupError(f"a state of {len(found)} parameters for {len(self._parameters)}")
        self._state = [{name: found[i][name].clone() for name in _KEPT} for i in range(len(found))]


_MIN_VARIANCE = 1e-8  # of returns in the critic's units, where that of all returns so far is 1


@dataclass(frozen=True)
class Batch:
    """B sequences of up to T steps as tensors; a sequence is no longer than an episode."""

    observations: Tensor  # [T, B, width] float32, as the policy saw them
    actions: Tensor  # [T, B, heads] int64, or float64 where they are continuous
    masks: Tensor  # [T, B, heads, widest head]
    log_probs: Tensor  # [T, B] float64, when acting
    values: Tensor  # [T, B] float64, when acting, in the critic's units of today
    advantages: Tensor  # [T, B] float64, normalised
    returns: Tensor  # [T, B] float64, in the critic's units of today
    valid: Tensor  # [T, B]; other entries are not looked at
    memory: Tensor | None = None  # [2, B, hidden], h and c at the beginning of every sequence; None: empty

    def select(self, sequences: Tensor) -> Batch:
        """Some of the sequences."""
        chosen = {name: part.index_select(1, sequences) for name, part in vars(self).items() if part is not None}
        return Batch(**chosen)

    def steps(self, tensor: Tensor) -> Tensor:
        """The valid steps [N, …] of a tensor [T, B, …]: a view where all are valid, as they are but for divergence."""
        return tensor.flatten(0, 1) if self.valid.all() else tensor[self.valid]


class PolicyOutputs(NamedTuple):
    """The policy of now on the valid steps of a batch, N of them."""

    log_probs: Tensor  # [N] float64
    entropies: Tensor  # [N, heads] float64
    values: Tensor  # [N] float64


class Terms(NamedTuple):
    """One minibatch: the loss (differentiable) and what it is made of."""

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    kl: Tensor
    clip_fraction: Tensor
    ratio_max: Tensor


def entropy_coefficient(settings: PPOSettings, episode: int, planned_episodes: int) -> float:
    """Linear from `entropy_coef` at episode 0 to `entropy_coef_end` at the last planned one; constant after it."""
    progress = min(1.0, episode / max(1, planned_episodes - 1))
    return settings.entropy_coef + (settings.entropy_coef_end - settings.entropy_coef) * progress


def learning_rate(settings: PPOSettings, episode: int, planned_episodes: int) -> float:
    """Linear from `lr` at episode 0 to its share `lr_end` at the last planned one; constant after it."""
    progress = min(1.0, episode / max(1, planned_episodes - 1))
    return settings.lr * (1.0 - (1.0 - settings.lr_end) * progress)


def evaluate(policy: ActorCritic, batch: Batch) -> PolicyOutputs:
    """The trunk applied once to whole sequences; results for valid steps only."""
    empty = policy.initial_state(batch.observations.shape[1])
    features, _ = policy.features(batch.observations, empty if batch.memory is None else tuple(batch.memory))
    alive, masks, actions = batch.steps(features), batch.steps(batch.masks), batch.steps(batch.actions)
    logits = policy.logits(alive, actions)
    if actions.is_floating_point():
        joint, entropies = normal_log_prob(logits, actions), normal_entropies(logits)
    else:
        log_probs = masked_log_softmax(logits, masks)
        joint, entropies = joint_log_prob(log_probs, masks, actions), head_entropies(log_probs, masks)
    return PolicyOutputs(joint, entropies, policy.values(alive).double())


def loss_terms(policy: ActorCritic, batch: Batch, settings: PPOSettings, entropy_coef: float) -> Terms:
    """Loss of one minibatch; means over its valid steps."""
    now = evaluate(policy, batch)
    log_ratio = now.log_probs - batch.steps(batch.log_probs)
    ratio = log_ratio.exp()
    advantages = batch.steps(batch.advantages)
    clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
    policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
    value_loss = 0.5 * (now.values - batch.steps(batch.returns)).square().mean()
    entropy = now.entropies.sum(-1).mean()
    return Terms(
        loss=policy_loss + settings.value_coef * value_loss - entropy_coef * entropy, policy_loss=policy_loss.detach(),
        value_loss=value_loss.detach(), kl=(ratio - 1.0 - log_ratio).detach().mean(),
        clip_fraction=((ratio - 1.0).abs() > settings.clip).double().mean(), ratio_max=ratio.detach().max(),
    )


def ppo_update(
    policy: ActorCritic, optimiser: Adam, batch: Batch, settings: PPOSettings, entropy_coef: float,
    rng: RngPath,
) -> PPOUpdate:
    """Update the policy in place; `rng` decides the order of sequences per epoch.

    Stops before a step whose minibatch is beyond the target KL, and before a step whose gradient is not finite. A
    number that is not finite is None in the record, and so are `advantage_std` and `return_mean`, which are in reward
    units: a batch is normalised. Heads are named by position, "0", "1", …; continuous decisions have none.
    """
    before = _diagnose(policy, batch)
    parameters = list(policy.parameters())
    seen: list[Terms] = []
    grad_norms: list[float] = []
    epochs_done, stopped_by_kl = 0, False
    for minibatch, last_of_epoch in _minibatches(batch, settings, rng):
        terms = loss_terms(policy, minibatch, settings, entropy_coef)
        seen.append(terms)
        if float(terms.kl) > settings.target_kl:
            stopped_by_kl = True
            break
        optimiser.zero_grad()
        terms.loss.backward()  # type: ignore[no-untyped-call]
        grad_norms.append(clip_gradients([p.grad for p in parameters if p.grad is not None], settings.max_grad_norm))
        if not math.isfinite(grad_norms[-1]):
            break
        optimiser.step()
        epochs_done += last_of_epoch
    return msgspec.structs.replace(
        before, policy_loss=_mean([terms.policy_loss for terms in seen]),
        value_loss=_mean([terms.value_loss for terms in seen]), approx_kl=_mean([terms.kl for terms in seen]),
        clip_fraction=_mean([terms.clip_fraction for terms in seen]), grad_norm=_mean(grad_norms),
        ratio_max=finite(max(float(terms.ratio_max) for terms in seen)), epochs_done=epochs_done,
        stopped_by_kl=stopped_by_kl,
    )  # fmt: skip


@torch.no_grad()
def _diagnose(policy: ActorCritic, batch: Batch) -> PPOUpdate:
    """What is known of the policy, on the whole batch, before the first step."""
    now = evaluate(policy, batch)
    ratio_error = ((now.log_probs - batch.log_probs[batch.valid]).exp() - 1.0).abs().max()
    uses = () if batch.actions.is_floating_point() else _head_uses(now.entropies, batch.masks[batch.valid].sum(-1))
    return PPOUpdate(
        entropy=finite(float(now.entropies.sum(-1).mean())), op_entropy=finite(float(now.entropies[:, 0].mean())),
        first_ratio_error=finite(float(ratio_error)), explained_variance=_explained_variance(batch),
        heads={str(position): use for position, use in enumerate(uses)},
    )  # fmt: skip


def _head_uses(entropies: Tensor, counts: Tensor) -> tuple[HeadUse, ...]:
    """From entropies and numbers of valid choices, both [N, heads], N >= 1."""
    chose = (counts > 1).sum(0)
    sums = normalised_entropies(entropies, counts).sum(0)
    return tuple(
        HeadUse(entropy=finite(total / steps) if steps else None, learnable=steps / len(counts))
        for total, steps in zip(sums.tolist(), chose.tolist(), strict=True)
    )


def _minibatches(batch: Batch, settings: PPOSettings, rng: RngPath) -> Iterator[tuple[Batch, bool]]:
    """Every epoch's minibatches in a fresh order, each with whether it is its epoch's last.

    Sequences without a valid step are left out: alone in a minibatch they would have no mean.
    """
    lived = np.flatnonzero(batch.valid.any(0).numpy())
    parts = min(settings.minibatches, len(lived))
    for epoch in range(settings.epochs):
        order = (rng / epoch).generator().permutation(lived)
        for index, envs in enumerate(np.array_split(order, parts)):
            yield batch.select(torch.from_numpy(envs)), index == parts - 1


def _explained_variance(batch: Batch) -> float | None:
    """1 - Var(return - value) / Var(return) of the critic that acted; None when returns do not vary."""
    returns = batch.returns[batch.valid]
    variance = float(returns.var(correction=0))
    if variance < _MIN_VARIANCE:
        return None
    return finite(1.0 - float((returns - batch.values[batch.valid]).var(correction=0)) / variance)


def clip_gradients(grads: list[Tensor], max_norm: float) -> float:
    """Scale `grads` in place so that their norm together is at most `max_norm`; returns the norm they had.

    torch.nn.utils.clip_grad_norm_ to the bit, without its calls per parameter.
    """
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
    torch._foreach_mul_(grads, torch.clamp(max_norm / (norm + 1e-6), max=1.0))
    return float(norm)


def _mean(numbers: Sequence[Tensor | float]) -> float | None:
    return finite(sum(map(float, numbers)) / len(numbers)) if numbers else None
