"""depthwise: x + ReLU(GN(pointwise(depthwise3×3(x)))). C² + 11C parameters."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from workers.blueprints._blueprint import Blueprint, Params, ParamSpec, conv, conv_params, group_norm, norm_params


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (
        conv_params("depthwise", channels, 1, 3),
        conv_params("pointwise", channels, channels, 1),
        *norm_params(channels),
    )


def _forward(x: Tensor, p: Params) -> Tensor:
    y = conv(conv(x, p["depthwise"], depthwise=True), p["pointwise"])
    return x + F.relu(group_norm(y, p["norm.gain"], p["norm.bias"]))


BLUEPRINT = Blueprint("depthwise", _params, _forward)
