"""conv_light: x + ReLU(GN(conv3×3(x))). 9C² + 2C parameters."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from workers.blueprints._blueprint import Blueprint, Params, ParamSpec, conv, conv_params, group_norm, norm_params


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return conv_params("conv", channels, channels, 3), *norm_params(channels)


def _forward(x: Tensor, p: Params) -> Tensor:
    return x + F.relu(group_norm(conv(x, p["conv"]), p["norm.gain"], p["norm.bias"]))


BLUEPRINT = Blueprint("conv_light", _params, _forward)
