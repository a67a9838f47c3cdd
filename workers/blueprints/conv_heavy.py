"""conv_heavy: x + two blocks of ReLU(GN(conv3×3(·))). 18C² + 4C parameters."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from workers.blueprints._blueprint import Blueprint, Params, ParamSpec, conv, conv_params, group_norm, norm_params


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (
        conv_params("first", channels, channels, 3),
        *norm_params(channels, "first_norm"),
        conv_params("second", channels, channels, 3),
        *norm_params(channels, "second_norm"),
    )


def _forward(x: Tensor, p: Params) -> Tensor:
    y = F.relu(group_norm(conv(x, p["first"]), p["first_norm.gain"], p["first_norm.bias"]))
    return x + F.relu(group_norm(conv(y, p["second"]), p["second_norm.gain"], p["second_norm.bias"]))


BLUEPRINT = Blueprint("conv_heavy", _params, _forward)
