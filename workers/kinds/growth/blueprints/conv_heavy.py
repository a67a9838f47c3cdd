"""conv_heavy: x + two blocks of ReLU(GN(conv3×3(·))). 18C² + 4C parameters."""

from __future__ import annotations

from workers.kinds.growth.layers.blueprint import Conv, Norm, ParamSpec, Relu, conv_params, norm_params, residual


def _params(channels: int) -> tuple[ParamSpec, ...]:
    return (
        conv_params("first", channels, channels, 3),
        *norm_params(channels, "first_norm"),
        conv_params("second", channels, channels, 3),
        *norm_params(channels, "second_norm"),
    )


BLUEPRINT = residual(
    "conv_heavy", _params, Conv("first"), Norm("first_norm"), Relu(), Conv("second"), Norm("second_norm"), Relu()
)
