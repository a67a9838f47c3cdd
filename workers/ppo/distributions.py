"""The distributions of a policy's actions: factored, masked categorical heads, or independent normal distributions.

A decision by heads is one choice per head. A head whose mask row is all False is unused: its action is 0, its
log-probability and its entropy are 0, and no gradient reaches its logits. The standard deviations of continuous
decisions do not depend on the observation; `parameters` [..., dimensions, 2] hold the mean and the logarithm of the
standard deviation. Log-probabilities are float64, because the joint log-probability is a sum whose float32 rounding
alone would change a PPO ratio by 1e-6.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from workers.arrays import Bools, Floats, Floats32, Ints

_MASKED = -1e30  # finite, so that a row without a valid action yields numbers to discard, not NaN
_LOWEST_EXPONENT = -700.0  # exp of it is still a normal number


def pad_heads(flat_logits: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Pad logits [..., sum(sizes)] to [..., heads, max(sizes)]; the padding must be masked."""
    places = torch.arange(max(sizes)) < torch.tensor(sizes)[:, None]
    return flat_logits.new_zeros(*flat_logits.shape[:-1], *places.shape).masked_scatter(places, flat_logits)


def masked_log_softmax(logits: Tensor, masks: Tensor) -> Tensor:
    """Return log-probabilities, float64, of logits [..., heads, width] under masks of the same shape."""
    return functional.log_softmax(logits.double().masked_fill(~masks, _MASKED), dim=-1)


def joint_log_prob(log_probs: Tensor, masks: Tensor, actions: Tensor) -> Tensor:
    """Return the joint log-probability [...] of actions [..., heads]: the sum over used heads."""
    chosen_log_probs = log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    return chosen_log_probs.masked_fill(~masks.any(-1), 0.0).sum(-1)


def head_entropies(log_probs: Tensor, masks: Tensor) -> Tensor:
    """Return entropies [..., heads], nats, over the valid actions; 0 for unused heads."""
    entropies = -(log_probs.exp() * log_probs).sum(-1)
    return entropies.masked_fill(~masks.any(-1), 0.0)


def choice_weights(logits: Floats32) -> Floats:
    """Return unnormalised probabilities of logits [E, any], all positive, so that a valid choice never has weight 0."""
    wide_logits = logits.astype(np.float64)
    weights: Floats = np.exp(np.maximum(wide_logits - wide_logits.max(axis=1, keepdims=True), _LOWEST_EXPONENT))
    return weights


def sample(weights: Floats, mask: Bools, uniforms: Floats) -> Ints:
    """Sample choices [E] from weights and mask [E, size] by inverse CDF at uniforms [E] in [0, 1); 0 if unused."""
    cdf = (weights * mask).cumsum(axis=1)
    threshold = uniforms * cdf[:, -1]  # below the total also when rounded: a double below 1 is at most 1 - 2**-53
    choice: Ints = (cdf > threshold[:, None]).argmax(axis=1)
    return choice


def most_probable(weights: Floats, mask: Bools) -> Ints:
    """Return the choices [E] with the highest weight, the first one of equals; 0 for an unused head."""
    choice: Ints = (weights * mask).argmax(axis=1)
    return choice


_SMALLEST_UNIFORM = 2.0**-54  # below every other uniform number; replaces 0, which would be infinitely far out


def normal_log_prob(parameters: Tensor, actions: Tensor) -> Tensor:
    """Return the log-density [...] of actions [..., dimensions], summed over the dimensions."""
    mean, log_std = parameters.double().unbind(-1)
    distance = (actions - mean) / log_std.exp()
    joint_probs: Tensor = (-0.5 * distance.square() - log_std - 0.5 * math.log(2.0 * math.pi)).sum(-1)
    return joint_probs


def normal_entropies(parameters: Tensor) -> Tensor:
    """Return differential entropies [..., dimensions], nats; they are negative for narrow distributions."""
    return parameters[..., 1].double() + 0.5 * math.log(2.0 * math.pi * math.e)


def normal_sample(parameters: Tensor, uniforms: Floats) -> Tensor:
    """Sample actions [..., dimensions], float64, by inverse CDF at uniforms of the same shape in [0, 1)."""
    mean, log_std = parameters.double().unbind(-1)
    normal_draws: Tensor = torch.special.ndtri(torch.from_numpy(np.maximum(uniforms, _SMALLEST_UNIFORM)))
    return mean + log_std.exp() * normal_draws.to(mean.device)
