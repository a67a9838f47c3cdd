"""depthwise: x + ReLU(GN(pointwise(depthwise3×3(x)))). C² + 11C parameters."""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Conv, Norm, ParamSpec, Relu, conv_params, norm_params, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (
        conv_params("depthwise", channels, 1, 3),
        conv_params("pointwise", channels, channels, 1),
        *norm_params(channels),
    )


BLUEPRINT = residual("depthwise", _params, Conv("depthwise", depthwise=True), Conv("pointwise"), Norm("norm"), Relu())
