"""bottleneck: x + GN(up(ReLU(conv3×3(ReLU(down(x)))))), the norm's gain starting at 0.

The zero gain makes it an exact identity at birth that leaves it smoothly (a zeroed convolution before a group norm is
undone by one step). 2Cb + 9b² + 2C parameters, b = max(8, C//4).
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from workers.blueprints._blueprint import Blueprint, Params, ParamSpec, conv, conv_params, group_norm, norm_params


def _params(channels: int) -> tuple[ParamSpec, ...]:
    width = max(8, channels // 4)
    return (
        conv_params("down", width, channels, 1),
        conv_params("middle", width, width, 3),
        conv_params("up", channels, width, 1),
        *norm_params(channels, gain=0.0),
    )


def _forward(x: Tensor, p: Params) -> Tensor:
    y = conv(F.relu(conv(F.relu(conv(x, p["down"])), p["middle"])), p["up"])
    return x + group_norm(y, p["norm.gain"], p["norm.bias"])


BLUEPRINT = Blueprint("bottleneck", _params, _forward)
