"""The weights of a fresh network, which depend only on its shape and on an rng path.

    orthogonal   orthogonal matrices (Saxe et al. 2014, arXiv:1312.6120), of hidden layers times the square root of 2
    xavier       uniform within the square root of 6 / (inputs + outputs) (Glorot and Bengio 2010, equation 16)
    pytorch      the defaults of torch.nn: weights and biases uniform within 1 / the square root of the inputs, or of
                 the hidden units of an LSTM; embeddings standard normal

The last layers of actor and critic are multiplied by gains of their own under each of them. Biases are 0 and forget
gates of an LSTM open, except as PyTorch's.
"""

from __future__ import annotations

import math

import numpy as np

from esper_ab.contracts.rng import RngPath
from workers.actor_critic import CONDITIONING_HEADS, Shape, Weights
from workers.arrays import Floats

_INNER_GAIN = math.sqrt(2.0)


def orthogonal(rows: int, columns: int, gain: float, rng: RngPath) -> Floats:
    """Return [rows, columns] with orthonormal rows or columns (whichever are fewer), times `gain`."""
    normal_matrix = rng.generator().standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(normal_matrix)
    q = q * np.sign(np.diag(r))  # makes the factorisation unique, and the result uniform over orthogonal matrices
    if rows < columns:
        q = q.T
    return gain * q


def initial_weights(shape: Shape, rng: RngPath) -> Weights:
    """Return the weights of a fresh network; they depend only on its shape and `rng`."""
    fresh = _Fresh(shape)
    fresh.trunk("", rng)
    _add_actor(fresh, rng)
    if shape.trunk == "separate":
        fresh.trunk("critic_trunk.", rng / "critic")
    fresh.linear("critic.0", shape.hidden, rng / "critic" / "inner")
    fresh.linear("value_out", 1, rng / "critic" / "out", shape.critic_gain)
    return {name: weight.astype(np.float32, order="C") for name, weight in fresh.weights.items()}


def _add_actor(fresh: _Fresh, rng: RngPath) -> None:
    shape = fresh.shape
    for group, heads in enumerate(shape.groups):
        name = f"actor.{group}"
        path = rng / "group" / heads.start
        fresh.linear(f"{name}.inner", shape.hidden, path / "inner")
        for head in range(min(heads.start, CONDITIONING_HEADS)):
            fresh.embedding(f"{name}.choices.{head}", shape.head_sizes[head], path / "choices" / head)
        choices = sum(shape.head_sizes[head] for head in heads)
        fresh.linear(f"{name}.logits", choices, path / "logits", shape.actor_gain)
    if shape.first_bias:
        fresh.weights["actor.0.logits.bias"][:] = shape.first_bias
    if shape.dimensions:
        path = rng / "group" / "normal"
        fresh.weights["actor.0.log_std"] = np.full(shape.dimensions, shape.log_std)
        fresh.linear("actor.0.inner", shape.hidden, path / "inner")
        fresh.linear("actor.0.means", shape.dimensions, path / "means", shape.actor_gain)


class _Fresh:
    """Weights by name, as they are drawn; every layer's inputs are hidden units unless they are given."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.weights: dict[str, Floats] = {}

    def trunk(self, prefix: str, rng: RngPath) -> None:
        """Draw an encoder, and an LSTM if the network has memory, with their norms."""
        hidden = self.shape.hidden
        self.linear(f"{prefix}encoder.0", hidden, rng / "encoder", inputs=self.shape.observation_width)
        self.norm(f"{prefix}encoder.1")
        if self.shape.memory == "lstm":
            self._add_lstm(f"{prefix}lstm", rng / "lstm")
            self.norm(f"{prefix}norm")

    def linear(self, name: str, outputs: int, rng: RngPath, gain: float | None = None, inputs: int = 0) -> None:
        """Draw a layer; one without `gain` is hidden."""
        inputs = inputs or self.shape.hidden
        if gain is None:
            gain = _INNER_GAIN if self.shape.init == "orthogonal" else 1.0
        self.weights[f"{name}.weight"] = self._matrix(outputs, inputs, gain, rng / "weight")
        self.weights[f"{name}.bias"] = np.zeros(outputs)
        if self.shape.init == "pytorch":
            self.weights[f"{name}.bias"] = _uniform((outputs,), gain / math.sqrt(inputs), rng / "bias")

    def norm(self, name: str) -> None:
        """Add a layer norm that changes nothing but the scale, if the network has any."""
        if self.shape.layer_norm:
            self.weights[f"{name}.weight"] = np.ones(self.shape.hidden)
            self.weights[f"{name}.bias"] = np.zeros(self.shape.hidden)

    def embedding(self, name: str, size: int, rng: RngPath) -> None:
        """Draw rows of root mean square 1, like the features that they are added to."""
        hidden = self.shape.hidden
        address = rng / "weight"
        if self.shape.init == "orthogonal":
            matrix = orthogonal(size, hidden, math.sqrt(max(size, hidden)), address)
        else:
            matrix = address.generator().standard_normal((size, hidden))
        self.weights[f"{name}.weight"] = matrix

    def _add_lstm(self, name: str, rng: RngPath) -> None:
        hidden = self.shape.hidden
        for part in ("weight_ih_l0", "weight_hh_l0"):  # a matrix for each gate: input, forget, cell, output
            gates = [self._matrix(hidden, hidden, 1.0, rng / part / gate) for gate in range(4)]
            self.weights[f"{name}.{part}"] = np.concatenate(gates)
        self.weights[f"{name}.bias_ih_l0"] = np.repeat([0.0, 1.0, 0.0, 0.0], hidden)
        self.weights[f"{name}.bias_hh_l0"] = np.zeros(4 * hidden)
        if self.shape.init == "pytorch":
            for part in ("bias_ih_l0", "bias_hh_l0"):
                self.weights[f"{name}.{part}"] = _uniform((4 * hidden,), 1.0 / math.sqrt(hidden), rng / part)

    def _matrix(self, outputs: int, inputs: int, gain: float, rng: RngPath) -> Floats:
        if self.shape.init == "orthogonal":
            return orthogonal(outputs, inputs, gain, rng)
        width = inputs if self.shape.init == "pytorch" else (inputs + outputs) / 6.0
        return _uniform((outputs, inputs), gain / math.sqrt(width), rng)


def _uniform(shape: tuple[int, ...], limit: float, rng: RngPath) -> Floats:
    return rng.generator().uniform(-limit, limit, shape)
