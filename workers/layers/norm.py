"""Group norm of networks side by side."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from workers.layers import device as _device

EPS = 1e-5
_aten = torch.ops.aten


def norm_groups(channels: int) -> int:
    """Groups of a group norm: the largest of 32, 16, …, 1 that leaves 16 or more channels, else the largest divisor."""
    divisors = [g for g in (32, 16, 8, 4, 2, 1) if channels % g == 0]
    return next((g for g in divisors if channels // g >= 16), divisors[0])


def group_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Group normalisation of every network by itself. x [B,H,W,N,C], gain and bias [N,C].

    x may be of less precision than gain and bias: then it is normalised in theirs, and returned in its own.
    """
    b, h, w, n, c = x.shape
    image = x.reshape(b, h, w, n * c).permute(0, 3, 1, 2).to(gain.dtype)
    y = cast(Tensor, _GroupNorm.apply(image, gain.flatten(), bias.flatten(), n * norm_groups(c)))  # type: ignore[no-untyped-call]
    return y.to(x.dtype).permute(0, 2, 3, 1).reshape(x.shape)


class _GroupNorm(torch.autograd.Function):
    """torch's, but for two things that its backward pass does not look after.

    torch 2.13 on a CPU crashes the process where the image needs no gradient: here every gradient is computed. And
    CUDA's kernels read images and gradients as NCHW, whatever their layout.
    """

    @staticmethod
    def forward(context: Any, image: Tensor, gain: Tensor, bias: Tensor, groups: int) -> Tensor:
        image = image.contiguous(memory_format=_layout(image))
        y, mean, inverse = _aten.native_group_norm(image, gain, bias, *_extents(image), groups, EPS)
        context.save_for_backward(image, mean, inverse, gain)
        context.groups = groups
        return cast(Tensor, y)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        image, mean, inverse, gain = context.saved_tensors
        g = grads[0].contiguous(memory_format=_layout(image))
        dx, dgain, dbias = _aten.native_group_norm_backward(
            g, image, mean, inverse, gain, *_extents(image), context.groups, [True] * 3
        )
        return dx, dgain, dbias, None


def _layout(image: Tensor) -> torch.memory_format:
    return torch.channels_last if _device.is_cpu(image.device) else torch.contiguous_format


def _extents(image: Tensor) -> tuple[int, int, int]:
    """Samples, channels, pixels."""
    return image.shape[0], image.shape[1], image.shape[2] * image.shape[3]
