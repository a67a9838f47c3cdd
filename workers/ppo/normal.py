"""Continuous choices: independent normal distributions, whose standard deviations do not depend on what is seen.

`parameters` [..., dimensions, 2] hold mean and logarithm of the standard deviation. Log-probabilities are float64, as
those of heads are.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from workers.arrays import Floats

_SMALLEST_UNIFORM = 2.0**-54  # below every other uniform number: 0 itself would be infinitely far out


def joint_log_prob(parameters: Tensor, actions: Tensor) -> Tensor:
    """Return the log-density [...] of actions [..., dimensions], a sum over the dimensions."""
    mean, log_std = parameters.double().unbind(-1)
    distance = (actions - mean) / log_std.exp()
    joint: Tensor = (-0.5 * distance.square() - log_std - 0.5 * math.log(2.0 * math.pi)).sum(-1)
    return joint


def entropies(parameters: Tensor) -> Tensor:
    """Return differential entropies [..., dimensions], nats; a narrow distribution has a negative one."""
    return parameters[..., 1].double() + 0.5 * math.log(2.0 * math.pi * math.e)


def sample(parameters: Tensor, uniforms: Floats) -> Tensor:
    """Sample actions [..., dimensions], float64, by inverse CDF at uniforms of that shape in [0, 1)."""
    mean, log_std = parameters.double().unbind(-1)
    normal: Tensor = torch.special.ndtri(torch.from_numpy(np.maximum(uniforms, _SMALLEST_UNIFORM)))
    return mean + log_std.exp() * normal.to(mean.device)
