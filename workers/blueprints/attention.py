"""attention: squeeze and excitation (Hu et al. 2018, arXiv:1709.01507), x·σ(W2·SiLU(W1·pool(x)) + b).

W2 starts at 0 and b at 3: about 0.953·x at birth. SiLU instead of ReLU: the features are positive, and with few hidden
units a ReLU could be dead for every sample. 2Cr + C parameters, r = max(1, C//4).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.layers import perceptron as _perceptron
from workers.layers.blueprint import (
    Back,
    Blueprint,
    Excite,
    Grads,
    Params,
    ParamSpec,
    fan_in_bound,
    linear,
    pooled,
    spread,
)


def _params(channels: int) -> tuple[ParamSpec, ...]:
    hidden = max(1, channels // 4)
    return (
        ParamSpec("squeeze", (channels, hidden), bound=fan_in_bound(channels)),
        ParamSpec("excite", (hidden, channels)),
        ParamSpec("bias", (channels,), center=3.0),
    )


def _forward(x: Tensor, p: Params) -> Tensor:
    hidden = F.silu(linear(pooled(x), p["squeeze"]))  # [N,B,r]
    return x * spread(torch.sigmoid(linear(hidden, p["excite"], p["bias"])), x)


def _by_hand(x: Tensor, p: Params) -> tuple[Tensor, Back]:
    passed = _perceptron.forward(pooled(x), _perceptron.Layers(p["squeeze"], None, p["excite"], p["bias"]))
    factor = spread(passed.out - 1.0, x)

    def back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
        felt = (g * x).sum((1, 2), dtype=passed.out.dtype).transpose(0, 1)  # [N,B,C]
        dpooled, own = _perceptron.backward(felt, passed, needed)
        grads["squeeze"], grads["excite"], grads["bias"] = own.first, own.second, own.second_bias
        if dpooled is None:
            return None
        return (g * factor).add_(spread(dpooled / (x.shape[1] * x.shape[2]), x))

    return x * factor, back


BLUEPRINT = Blueprint("attention", _params, _forward, (Excite("squeeze", "excite", "bias"),), by_hand=_by_hand)
