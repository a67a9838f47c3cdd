"""The actor-critic: observations in, conditional logits and values out.

    observation -> Linear, LayerNorm, tanh -> LSTM -> LayerNorm -> features; without memory the first three alone
    features                  -> logits of head 0 (the op, by convention)
    features, op              -> logits of head 1 (the slot)
    features, op, slot        -> logits of all other heads
    features                  -> means of a continuous decision, in the place of all logits
    features                  -> value, in units of the return normaliser

Choices enter as embeddings added before a group's tanh: conditioning costs one row look-up per choice.

Initial weights are a pure function of an rng path, independent of torch's global generator: orthogonal (Saxe et al.
2014, arXiv:1312.6120), zero biases, forget gates open. The layers skip torch's own initialisation and are filled from
Philox. (torch's meta device would do the former, too, but it imports torch's compiler: a second of every worker's
start.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats
from workers.ppo.distributions import pad_heads


class _Unfilled:
    """A layer that torch does not initialise."""

    def reset_parameters(self) -> None:
        pass


class _Linear(_Unfilled, nn.Linear):
    """Filled by `linear`."""


class _Embedding(_Unfilled, nn.Embedding):
    """Filled by `embedding`."""


class _LSTM(_Unfilled, nn.LSTM):
    """Filled by `lstm`."""


def orthogonal(rows: int, columns: int, gain: float, rng: RngPath) -> Floats:
    """Return [rows, columns] with orthonormal rows or columns (whichever are fewer), times `gain`."""
    normal = rng.generator().standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(normal)
    q = q * np.sign(np.diag(r))  # makes the factorisation unique, and the result uniform over orthogonal matrices
    return gain * (q if rows >= columns else q.T)


def linear(inputs: int, outputs: int, gain: float, rng: RngPath) -> nn.Linear:
    """Make a linear layer with orthogonal weight and zero bias."""
    layer = _Linear(inputs, outputs)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(orthogonal(outputs, inputs, gain, rng / "weight")))
        layer.bias.zero_()
    return layer


def embedding(choices: int, width: int, rng: RngPath) -> nn.Embedding:
    """Make an embedding with rows of root mean square 1, like the layer-normalised features it is added to."""
    table = _Embedding(choices, width)
    with torch.no_grad():
        gain = math.sqrt(max(choices, width))
        table.weight.copy_(torch.from_numpy(orthogonal(choices, width, gain, rng / "weight")))
    return table


def lstm(width: int, rng: RngPath) -> nn.LSTM:
    """Make one LSTM layer, width -> width: each gate's matrices orthogonal, forget-gate bias 1, other biases 0."""
    layer = _LSTM(width, width)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if parameter.dim() == 1:
                parameter.zero_()
                continue
            gates = [orthogonal(width, width, 1.0, rng / name / gate) for gate in range(4)]
            parameter.copy_(torch.from_numpy(np.concatenate(gates)))
        dict(layer.named_parameters())["bias_ih_l0"][width : 2 * width] = 1.0  # order: input, forget, cell, output
    return layer


RecurrentState = tuple[Tensor, Tensor]  # h and c of the LSTM, each [B, hidden]

_INNER_GAIN = math.sqrt(2.0)
_LOGIT_GAIN = 0.01  # starts near uniform over the valid actions
_VALUE_GAIN = 0.1  # starts near the mean return, which is 0 in normalised units
_CONDITIONING_HEADS = 2


def _linear(x: Tensor, layer: nn.Linear) -> Tensor:
    """Apply a linear layer by its function: calling the module costs as much again for a few rows."""
    return functional.linear(x, layer.weight, layer.bias)


def _normed(x: Tensor, layer: nn.LayerNorm) -> Tensor:
    return torch.layer_norm(x, layer.normalized_shape, layer.weight, layer.bias, layer.eps)


class HeadGroup(nn.Module):
    """Heads whose logits are computed together, given features and choices of the (at most two) leading heads."""

    def __init__(self, heads: range, sizes: tuple[int, ...], hidden: int, rng: RngPath) -> None:
        super().__init__()
        self.heads = heads
        self.sizes = tuple(sizes[head] for head in heads)
        conditions = range(min(heads.start, _CONDITIONING_HEADS))
        self.inner = linear(hidden, hidden, _INNER_GAIN, rng / "inner")
        self._tables = tuple(embedding(sizes[head], hidden, rng / "choices" / head) for head in conditions)
        self.choices = nn.ModuleList(self._tables)
        self.logits = linear(hidden, sum(self.sizes), _LOGIT_GAIN, rng / "logits")

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Return logits [..., sum of the group's sizes] from features [..., hidden], actions [..., >= heads.start]."""
        inner = _linear(features, self.inner)
        for head, table in enumerate(self._tables):
            inner = inner + torch.embedding(table.weight, actions[..., head])
        return _linear(torch.tanh(inner), self.logits)


class NormalHead(nn.Module):
    """Continuous choices, given features: their means; their standard deviations are weights of their own."""

    def __init__(self, dimensions: int, hidden: int, rng: RngPath) -> None:
        super().__init__()
        self.inner = linear(hidden, hidden, _INNER_GAIN, rng / "inner")
        self.means = linear(hidden, dimensions, _LOGIT_GAIN, rng / "means")
        self.log_std = nn.Parameter(torch.zeros(dimensions))

    def forward(self, features: Tensor) -> Tensor:
        """Return means and logarithms of standard deviations [..., dimensions, 2] from features [..., hidden]."""
        means = _linear(torch.tanh(_linear(features, self.inner)), self.means)
        return torch.stack((means, self.log_std.expand_as(means)), -1)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Sizes of a network."""

    observation_width: int
    head_sizes: tuple[int, ...] = ()  # choices per head; empty: continuous
    dimensions: int = 0  # of a continuous decision
    hidden: int
    memory: Literal["lstm", "none"] = "lstm"
    first_bias: tuple[float, ...] = ()  # where the logits of head 0 start, one per choice; empty: near uniform


class ActorCritic(nn.Module):
    """Actor and critic on one trunk; initial weights are a pure function of `rng` and the sizes.

    The trunk is recurrent, or, without memory, one layer.
    """

    def __init__(self, shape: Shape, rng: RngPath) -> None:
        super().__init__()
        self.shape, hidden = shape, shape.hidden
        self._encoder = linear(shape.observation_width, hidden, _INNER_GAIN, rng / "encoder"), nn.LayerNorm(hidden)
        self.encoder = nn.Sequential(*self._encoder, nn.Tanh())
        if shape.memory == "lstm":
            self.lstm = lstm(hidden, rng / "lstm")
            self.norm = nn.LayerNorm(hidden)
        self.groups, self._normal = _actor(shape, rng / "group")  # in tuples: no submodules
        self.actor = nn.ModuleList((*self.groups, *self._normal))
        self._critic = (linear(hidden, hidden, _INNER_GAIN, rng / "critic" / "inner"),)  # in a tuple: no submodule
        self.critic = nn.Sequential(*self._critic, nn.Tanh())
        self.value_out = linear(hidden, 1, _VALUE_GAIN, rng / "critic" / "out")

    def initial_state(self, batch: int) -> RecurrentState:
        """Return the empty memory of a new episode."""
        zeros = self.value_out.weight.new_zeros(batch, self.shape.hidden)
        return zeros, zeros.clone()

    def features(self, observations: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Return features [T, B, hidden] and the state after the last step, from observations [T, B, width]."""
        encoded: Tensor = self.encoder(observations)
        if self.shape.memory == "none":
            return encoded, state
        outputs, (h, c) = self.lstm(encoded, (state[0][None], state[1][None]))
        return self.norm(outputs), (h[0], c[0])

    def step(self, observation: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Compute `features` for one step, [B, hidden] from [B, width], at a third of its cost for short batches."""
        first, norm = self._encoder
        x = torch.tanh(_normed(_linear(observation, first), norm))
        if self.shape.memory == "none":
            return x, state
        h, c = torch.lstm_cell(x, state, *cast(list[Tensor], self.lstm._flat_weights))
        return _normed(h, self.norm), (h, c)

    def values(self, features: Tensor) -> Tensor:
        """Return normalised values [...] of features [..., hidden]."""
        return _linear(torch.tanh(_linear(features, self._critic[0])), self.value_out).squeeze(-1)

    def logits(self, features: Tensor, actions: Tensor) -> Tensor:
        """Return logits of every head, [..., heads, widest head], given the actions taken [..., heads].

        Of continuous decisions it returns means and logarithms of standard deviations, [..., dimensions, 2].
        """
        if self._normal:
            return self._normal[0].forward(features)
        return pad_heads(torch.cat([group(features, actions) for group in self.groups], -1), self.shape.head_sizes)

    @torch.no_grad()
    def rescale_values(self, scale: float, shift: float) -> None:
        """Rescale every value v to v * scale + shift, so that outputs keep their meaning when the normaliser moves.

        The output-preserving half of Pop-Art (van Hasselt et al. 2016, arXiv:1602.07714).
        """
        self.value_out.weight.mul_(scale)
        self.value_out.bias.mul_(scale).add_(shift)


def _actor(shape: Shape, path: RngPath) -> tuple[tuple[HeadGroup, ...], tuple[NormalHead, ...]]:
    """Make the groups of heads, or the head of continuous decisions."""
    if shape.dimensions:
        return (), (NormalHead(shape.dimensions, shape.hidden, path / "normal"),)
    count = len(shape.head_sizes)
    ranges = [heads for heads in (range(0, 1), range(1, min(2, count)), range(2, count)) if len(heads)]
    groups = tuple(HeadGroup(heads, shape.head_sizes, shape.hidden, path / heads.start) for heads in ranges)
    if shape.first_bias:
        with torch.no_grad():
            groups[0].logits.bias.copy_(torch.tensor(shape.first_bias))
    return groups, ()
