"""norm: x + tanh(scale)·(GN(x) − x), scale 0: an exact identity that learns through its scale. 2C + 1 parameters."""

from __future__ import annotations

import torch
from torch import Tensor

from workers.blueprints._blueprint import Blueprint, Params, ParamSpec, group_norm, norm_params


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (*norm_params(channels), ParamSpec("scale", (1,)))


def _forward(x: Tensor, p: Params) -> Tensor:
    scale = torch.tanh(p["scale"]).to(x.dtype)  # [N,1]
    return x + scale * (group_norm(x, p["norm.gain"], p["norm.bias"]) - x)


BLUEPRINT = Blueprint("norm", _params, _forward)
