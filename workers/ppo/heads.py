"""Factored, masked categorical heads: layout, log-probability, entropy, sampling. Knows no network and no growth.

A decision is one choice per head. A head whose mask row is all False is unused: its action is 0, its log-probability
and its entropy are 0, and no gradient reaches its logits. Log-probabilities are float64: the joint one is a sum over
heads, and in float32 its rounding alone would move a PPO ratio by 1e-6.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

_MASKED = -1e30  # finite, so that a row without a valid action yields numbers to be discarded and not NaN


class Masks(Protocol):
    """Which choices are valid, head by head."""

    def mask(self, head: int, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
        """[E, size of head] given the choices [E, head] of all earlier heads; an all-False row: head unused."""
        ...


def pad_heads(flat: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Logits [..., sum(sizes)] -> [..., heads, max(sizes)]; what is padded must be masked."""
    widest = max(sizes)
    parts = torch.split(flat, list(sizes), -1)
    return torch.stack([functional.pad(part, (0, widest - part.shape[-1])) for part in parts], -2)


def masked_log_softmax(logits: Tensor, masks: Tensor) -> Tensor:
    """Log-probabilities, float64, of logits [..., heads, width] under masks of the same shape."""
    return functional.log_softmax(logits.double().masked_fill(~masks, _MASKED), dim=-1)


def joint_log_prob(log_probs: Tensor, masks: Tensor, actions: Tensor) -> Tensor:
    """[...]: the sum over used heads of the log-probability of actions [..., heads]."""
    chosen = log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
    return chosen.masked_fill(~masks.any(-1), 0.0).sum(-1)


def head_entropies(log_probs: Tensor, masks: Tensor) -> Tensor:
    """[..., heads], nats over the valid actions; 0 for unused heads."""
    entropies = -(log_probs.exp() * log_probs).sum(-1)
    return entropies.masked_fill(~masks.any(-1), 0.0)


def sample(logits: NDArray[np.float32], mask: NDArray[np.bool_], uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
    """[E] choices by inverse CDF in float64 from logits and mask [E, size] and uniforms [E] in [0, 1)."""
    valid = np.where(mask, logits, _MASKED).astype(np.float64)
    cdf = (np.exp(valid - valid.max(axis=1, keepdims=True)) * mask).cumsum(axis=1)
    total = cdf[:, -1:]
    index = (cdf <= uniforms[:, None] * total).sum(axis=1)
    last = (cdf < total).sum(axis=1)  # the product above may round up to the total; 0 for an unused head
    choice: NDArray[np.int64] = np.minimum(index, last)
    return choice


def most_probable(logits: NDArray[np.float32], mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """[E] choices of highest probability; the first of equals."""
    choice: NDArray[np.int64] = np.where(mask, logits, _MASKED).argmax(axis=1)
    return choice
