"""The actor-critic in torch: the reference for the native implementation, and its substitute if there is no compiler.

Plain functions of weights by name, differentiated by autograd. The optimiser is torch's Adam, called without its class.
Tensors share the memory of numpy's arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.adam import adam

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import (
    CONDITIONING_HEADS,
    ActorCritic,
    Batch,
    Decision,
    Learnt,
    Outputs,
    Shape,
    UpdateRule,
)
from workers.arrays import Bools, Floats, Floats32, Ints, all_false, all_true, int_zeros
from workers.environments import Decisions, Masks
from workers.initial_weights import initial_weights
from workers.ppo.distributions import (
    choice_weights,
    head_entropies,
    joint_log_prob,
    masked_log_softmax,
    most_probable,
    normal_entropies,
    normal_log_prob,
    normal_sample,
    pad_heads,
    sample,
)

ADAM_BETAS = (0.9, 0.999)


class Features(NamedTuple):
    """The features of the actor and of the critic, [T, B, hidden] each, the same ones with a shared trunk."""

    actor: Tensor
    critic: Tensor
    memory: Tensor  # afterwards, [2, B, memory_width]


class TorchPolicy(ActorCritic):
    """Actor and critic; initial weights depend only on `rng` and the shape."""

    def __init__(self, shape: Shape, rng: RngPath) -> None:
        super().__init__(shape)
        # In torch's memory, because the last bits of torch's products may depend on alignment, which numpy leaves open.
        initial_tensors = {name: torch.tensor(weight) for name, weight in initial_weights(shape, rng).items()}
        self.weights = {name: weight.numpy() for name, weight in initial_tensors.items()}
        self.means = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self.squares = {name: np.zeros_like(weight) for name, weight in self.weights.items()}
        self._tensors = {name: weight.requires_grad_() for name, weight in initial_tensors.items()}
        sizes = torch.tensor(shape.head_sizes, dtype=torch.int64)
        self._activation = torch.relu if shape.activation == "relu" else torch.tanh
        self._fitting = torch.arange(max(shape.head_sizes, default=0)) < sizes[:, None]  # masks of all choices

    @torch.inference_mode()
    def decide(
        self, observations: Floats32, memory: Floats32, masks: Masks | None, uniforms: Floats | None
    ) -> Decision:
        """Decide as `ActorCritic` says."""
        features = self.features(torch.tensor(observations)[None], torch.tensor(memory))
        memory[:] = features.memory.numpy()
        choose = self._choose_continuous if self.shape.dimensions else self._choose_discrete
        actions, valid_masks, logits = choose(features.actor[0], masks, uniforms)
        log_probs, _ = self._measured(logits, torch.from_numpy(valid_masks), torch.from_numpy(actions))
        values = self._values(features.critic[0]).numpy()
        shown_masks = None if masks is None or self.shape.dimensions else valid_masks
        return Decision(actions, shown_masks, log_probs.numpy(), values)

    @torch.inference_mode()
    def values(self, observations: Floats32, memory: Floats32) -> Floats:
        """Implement `ActorCritic.values`."""
        features = self.features(torch.tensor(observations)[None], torch.tensor(memory))
        return self._values(features.critic[0]).numpy()

    @torch.no_grad()
    def evaluate(self, batch: Batch) -> Outputs:
        """Implement `ActorCritic.evaluate`."""
        return Outputs(*(part.numpy() for part in self._outputs(_tensors(batch))))

    def learn(self, batch: Batch, sequences: Ints, rule: UpdateRule) -> Learnt:
        """Implement `ActorCritic.learn`."""
        sequence_index = torch.from_numpy(sequences)
        terms = self.loss({name: part.index_select(1, sequence_index) for name, part in _tensors(batch).items()}, rule)
        loss = terms.pop("loss")
        numbers = {name: float(term) for name, term in terms.items()}
        if numbers["kl"] > rule.target_kl:
            return Learnt(**numbers, grad_norm=None, stepped=False)
        tensors = list(self._tensors.values())
        for tensor, grad in zip(tensors, torch.autograd.grad(loss, tensors), strict=True):
            tensor.grad = grad
        norm = float(nn.utils.clip_grad_norm_(tensors, rule.max_grad_norm))
        if is_stepped := math.isfinite(norm):
            self._move(rule)
        return Learnt(**numbers, grad_norm=norm, stepped=is_stepped)

    @torch.no_grad()
    def _move(self, rule: UpdateRule) -> None:
        """Move all weights against their gradients."""
        tensors = list(self._tensors.values())
        means = [torch.from_numpy(mean) for mean in self.means.values()]
        squares = [torch.from_numpy(square) for square in self.squares.values()]
        grads = [tensor.grad for tensor in tensors if tensor.grad is not None]
        steps = list(torch.full((len(tensors),), float(self.steps)).unbind())
        adam(
            tensors,
            grads,
            means,
            squares,
            [],
            steps,
            fused=True,
            amsgrad=False,
            beta1=ADAM_BETAS[0],
            beta2=ADAM_BETAS[1],
            lr=rule.lr,
            weight_decay=0.0,
            eps=rule.adam_eps,
            maximize=False,
        )
        self.steps += 1

    def loss(self, batch: dict[str, Tensor], rule: UpdateRule) -> dict[str, Tensor]:
        """Return a minibatch's loss with its terms, which are means over valid steps; `batch`: parts of a `Batch`."""
        log_probs, entropies, values = self._outputs(batch)
        valid_mask = batch["valid"]
        advantages = batch["advantages"][valid_mask]
        log_ratio = log_probs - batch["log_probs"][valid_mask]
        ratio = log_ratio.exp()
        clipped_ratio = ratio.clamp(1.0 - rule.clip, 1.0 + rule.clip)
        policy_loss = -torch.minimum(ratio * advantages, clipped_ratio * advantages).mean()
        squares = (values - batch["returns"][valid_mask]).square()
        if rule.value_clip > 0.0:
            values_before = batch["values"][valid_mask]
            bounded_values = values_before + (values - values_before).clamp(-rule.value_clip, rule.value_clip)
            squares = torch.maximum(squares, (bounded_values - batch["returns"][valid_mask]).square())
        value_loss = 0.5 * squares.mean()
        entropy = entropies.sum(-1).mean()
        return dict(
            loss=policy_loss + rule.value_coef * value_loss - rule.entropy_coef * entropy,
            policy_loss=policy_loss.detach(),
            value_loss=value_loss.detach(),
            kl=(ratio - 1.0 - log_ratio).detach().mean(),
            clip_fraction=((ratio - 1.0).abs() > rule.clip).double().mean(),
            ratio_max=ratio.detach().max(),
        )

    def features(self, observations: Tensor, memory: Tensor) -> Features:
        """Return features of observations [T, B, width], and the memory [2, B, memory_width] after them."""
        if self.shape.trunk == "shared":
            features, memory_after = self._trunk("", observations, memory)
            return Features(features, features, memory_after)
        actor_memory, critic_memory = memory.chunk(2, -1)
        actor_features, actor_memory = self._trunk("", observations, actor_memory)
        critic_features, critic_memory = self._trunk("critic_trunk.", observations, critic_memory)
        return Features(actor_features, critic_features, torch.cat((actor_memory, critic_memory), -1))

    def _trunk(self, prefix: str, observations: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        encoded_observations = self._linear(f"{prefix}encoder.0", observations)
        encoded_observations = self._activation(self._norm(f"{prefix}encoder.1", encoded_observations))
        if self.shape.memory == "none":
            return encoded_observations, memory
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [self._tensors[f"{prefix}lstm.{name}_l0"] for name in names]
        state = memory[0][None].contiguous(), memory[1][None].contiguous()
        outputs, h, c = torch.lstm(encoded_observations, state, weights, True, 1, 0.0, False, False, False)
        return self._norm(f"{prefix}norm", outputs), torch.cat((h, c))

    def logits(self, features: Tensor, actions: Tensor) -> Tensor:
        """Return logits of every head, [..., heads, widest head], given the actions taken [..., heads].

        For continuous decisions, return means and logarithms of standard deviations, [..., dimensions, 2].
        """
        if self.shape.dimensions:
            means = self._linear("actor.0.means", self._activation(self._linear("actor.0.inner", features)))
            return torch.stack((means, self._tensors["actor.0.log_std"].expand_as(means)), -1)
        groups = [self._group(group, features, actions) for group in range(len(self.shape.groups))]
        return pad_heads(torch.cat(groups, -1), self.shape.head_sizes)

    def _outputs(self, batch: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probabilities [N], entropies [N, heads] and values [N] of the valid steps, float64."""
        valid_mask = batch["valid"]
        memory = batch.get("memory")
        if memory is None:
            memory = torch.from_numpy(self.initial_memory(valid_mask.shape[1]))
        features = self.features(batch["observations"], memory)
        actor_features = features.actor[valid_mask]
        critic_features = actor_features if self.shape.trunk == "shared" else features.critic[valid_mask]
        masks = batch["masks"][valid_mask] if "masks" in batch else self._fitting
        actions = batch["actions"][valid_mask]
        return *self._measured(self.logits(actor_features, actions), masks, actions), self._values(critic_features)

    def _measured(self, logits: Tensor, masks: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Return log-probabilities [N] of actions and entropies [N, heads], float64."""
        if self.shape.dimensions:
            return normal_log_prob(logits, actions), normal_entropies(logits)
        log_probs = masked_log_softmax(logits, masks)
        return joint_log_prob(log_probs, masks, actions), head_entropies(log_probs, masks)

    def _choose_discrete(
        self, features: Tensor, masks: Masks | None, uniforms: Floats | None
    ) -> tuple[Decisions, Bools, Tensor]:
        """Return actions [E, heads], with masks and logits [E, heads, widest head]."""
        sizes = self.shape.head_sizes
        n_envs = len(features)
        actions = int_zeros((n_envs, len(sizes)))
        valid_masks = all_false((n_envs, len(sizes), max(sizes)))
        logits = []
        for group, heads in enumerate(self.shape.groups):
            logits.append(self._group(group, features, torch.from_numpy(actions)))
            bounds = np.cumsum([sizes[head] for head in heads])
            parts = np.split(logits[-1].numpy(), bounds[:-1], 1)
            for head, part in zip(heads, parts, strict=True):
                if masks is None:
                    mask = all_true(part.shape)
                else:
                    mask = masks.mask(head, actions[:, :head])
                valid_masks[:, head, : sizes[head]] = mask
                weights = choice_weights(part)
                if uniforms is None:
                    choice = most_probable(weights, mask)
                else:
                    choice = sample(weights, mask, uniforms[:, head])
                actions[:, head] = choice
        return actions, valid_masks, pad_heads(torch.cat(logits, -1), sizes)

    def _choose_continuous(
        self, features: Tensor, masks: Masks | None, uniforms: Floats | None
    ) -> tuple[Decisions, Bools, Tensor]:
        """Return actions [E, dimensions], no masks, and the parameters from which the actions were drawn."""
        parameters = self.logits(features, features)
        if uniforms is None:
            actions = parameters[..., 0].double()
        else:
            actions = normal_sample(parameters, uniforms)
        return actions.numpy(), all_false(0), parameters

    def _group(self, group: int, features: Tensor, actions: Tensor) -> Tensor:
        """Return logits [..., sum of the group's sizes] from features [..., hidden], given actions [..., heads]."""
        inner_features = self._linear(f"actor.{group}.inner", features)
        conditioning = min(self.shape.groups[group].start, CONDITIONING_HEADS)
        for head in range(conditioning):
            embeddings = self._tensors[f"actor.{group}.choices.{head}.weight"]
            inner_features = inner_features + torch.embedding(embeddings, actions[..., head])
        return self._linear(f"actor.{group}.logits", self._activation(inner_features))

    def _values(self, features: Tensor) -> Tensor:
        return self._linear("value_out", self._activation(self._linear("critic.0", features))).squeeze(-1).double()

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return functional.linear(x, self._tensors[f"{name}.weight"], self._tensors[f"{name}.bias"])

    def _norm(self, name: str, x: Tensor) -> Tensor:
        if not self.shape.layer_norm:
            return x
        weight = self._tensors[f"{name}.weight"]
        bias = self._tensors[f"{name}.bias"]
        return functional.layer_norm(x, weight.shape, weight, bias)


def _tensors(batch: Batch) -> dict[str, Tensor]:
    return {name: torch.tensor(part) for name, part in vars(batch).items() if part is not None}
