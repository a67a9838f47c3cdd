"""norm: x + tanh(scale)·(GN(x) − x). 2C + 1 parameters.

The scale starts at 0, which makes the module an exact identity at birth, and the scale can learn from there.
"""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Norm, ParamSpec, Towards, norm_params, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (*norm_params(channels), ParamSpec("scale", (1,)))


BLUEPRINT = residual("norm", _params, Norm("norm"), Towards("scale"))
