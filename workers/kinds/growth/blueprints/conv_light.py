"""conv_light: x + ReLU(GN(conv3×3(x))). 9C² + 2C parameters."""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Conv, Norm, ParamSpec, Relu, conv_params, norm_params, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return conv_params("conv", channels, channels, 3), *norm_params(channels)


BLUEPRINT = residual("conv_light", _params, Conv("conv"), Norm("norm"), Relu())
