"""Layers whose initial weights are a pure function of an rng path, independent of torch's global generator.

Orthogonal weights (Saxe et al. 2014, arXiv:1312.6120), zero biases, forget gates open. The layers skip torch's own
initialisation and are filled from Philox. (torch's meta device would do the former, too, but it imports torch's
compiler: a second of every worker's start.)
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats


class _Linear(nn.Linear):
    def reset_parameters(self) -> None:
        pass


class _Embedding(nn.Embedding):
    def reset_parameters(self) -> None:
        pass


class _LSTM(nn.LSTM):
    def reset_parameters(self) -> None:
        pass


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
