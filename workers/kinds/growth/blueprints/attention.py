"""attention: squeeze and excitation (Hu et al. 2018, arXiv:1709.01507), x·σ(W2·SiLU(W1·pool(x)) + b).

W2 starts at 0 and b at 3, which gives about 0.953·x at birth. The module uses SiLU because the features are positive: a
ReLU with few hidden units could be dead for every sample. 2Cr + C parameters, r = max(1, C//4).
"""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Excite, ParamSpec, fan_in_bound, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    hidden = max(1, channels // 4)
    return (
        ParamSpec("squeeze", (channels, hidden), bound=fan_in_bound(channels)),
        ParamSpec("excite", (hidden, channels)),
        ParamSpec("bias", (channels,), center=3.0),
    )


BLUEPRINT = residual("attention", _params, Excite("squeeze", "excite", "bias"))
