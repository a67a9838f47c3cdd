"""bottleneck: x + GN(up(ReLU(conv3×3(ReLU(down(x)))))); the gain of the norm starts at 0.

The zero gain makes the module an exact identity at birth, from which training departs smoothly. (A zeroed convolution
before a group norm would jump after one step.) 2Cb + 9b² + 2C parameters, b = max(8, C//4).
"""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Conv, Norm, ParamSpec, Relu, conv_params, norm_params, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    width = max(8, channels // 4)
    return (
        conv_params("down", width, channels, 1),
        conv_params("middle", width, width, 3),
        conv_params("up", channels, width, 1),
        *norm_params(channels, gain=0.0),
    )


BLUEPRINT = residual("bottleneck", _params, Conv("down"), Relu(), Conv("middle"), Relu(), Conv("up"), Norm("norm"))
