"""conv_small: x + ReLU(GN(conv1×1(x))). C² + 2C parameters."""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Conv, Norm, ParamSpec, Relu, conv_params, norm_params, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return conv_params("conv", channels, channels, 1), *norm_params(channels)


BLUEPRINT = residual("conv_small", _params, Conv("conv"), Norm("norm"), Relu())
