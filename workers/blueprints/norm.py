"""norm: x + tanh(scale)·(GN(x) − x), scale 0: an exact identity that learns through its scale. 2C + 1 parameters."""

from __future__ import annotations

import torch
from torch import Tensor

from workers.blueprints._blueprint import Back, Blueprint, Grads, Params, ParamSpec, group_norm, norm_params
from workers.blueprints._norm import norm_backward, norm_forward


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (*norm_params(channels), ParamSpec("scale", (1,)))


def _forward(x: Tensor, p: Params) -> Tensor:
    scale = torch.tanh(p["scale"]).to(x.dtype)  # [N,1]
    return x + scale * (group_norm(x, p["norm.gain"], p["norm.bias"]) - x)


def _by_hand(x: Tensor, p: Params) -> tuple[Tensor, Back]:
    y, saved = norm_forward(x, p["norm.gain"], p["norm.bias"])
    away, scale = y.sub_(x), torch.tanh(p["scale"])  # [N,1]
    factor = scale.to(x.dtype).expand(-1, x.shape[4]).contiguous()  # one long inner loop

    def back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
        moved = (g * away).sum((1, 2), dtype=scale.dtype).sum((0, 2))[:, None]
        grads["scale"] = moved.mul_(1.0 - scale.square())
        g = g * factor
        dx, grads["norm.gain"], grads["norm.bias"] = norm_backward(g, saved)
        return dx.sub_(g) if needed else None

    return away * factor, back


BLUEPRINT = Blueprint("norm", _params, _forward, by_hand=_by_hand)
