"""Convolution and group norm of n networks side by side: x [B,H,W,n,I], kernels [n,O,I,k,k] -> [B,H,W,n,O].

Convolutions are same-padded, without bias. On a CPU they use torch's grouped convolution of one channels-last image. On
a GPU, grouped kernels for few channels are slow and some of them are not deterministic. Convolutions are therefore
matrix products there: the unfolded neighbourhood of every pixel times the kernel. A 1x1 kernel is a matrix product on
every device.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.kinds.growth.layers import device as _device


def conv(x: Tensor, weight: Tensor, depthwise: bool = False) -> Tensor:
    """Return the convolution [B,H,W,n,O] of x [B,H,W,n,I] with `weight` [n,O,I,k,k]; depthwise: [n,C,1,k,k].

    The result has x's precision. Images [B,H,W,1,I] are shared by all networks.
    """
    weight = weight.to(x.dtype)
    if weight.shape[-1] > 1 and _device.is_cpu(x.device):
        return by_groups(x, weight, depthwise)
    if depthwise:
        weight = whole(weight)
    return by_products(x, weight)


def by_groups(x: Tensor, weight: Tensor, depthwise: bool = False) -> Tensor:
    """Return the convolution, computed as one grouped convolution."""
    b, h, w, images, in_channels = x.shape
    n, out_channels, _, k, _ = weight.shape
    image = x.reshape(b, h, w, images * in_channels).permute(0, 3, 1, 2)  # channels last in memory
    kernel = weight.flatten(0, 1).contiguous(memory_format=torch.channels_last)
    groups = n * in_channels if depthwise else images
    y = F.conv2d(image, kernel, padding=k // 2, groups=groups)
    return y.permute(0, 2, 3, 1).reshape(b, h, w, n, out_channels)


def by_products(x: Tensor, weight: Tensor) -> Tensor:
    """Return the convolution, computed as one matrix product per network."""
    return cast(Tensor, _Products.apply(x, weight))  # type: ignore[no-untyped-call]


def whole(weight: Tensor) -> Tensor:
    """Return a depthwise kernel [n,C,1,k,k] as a dense one [n,C,C,k,k]."""
    return torch.diag_embed(weight[:, :, 0].permute(0, 2, 3, 1)).permute(0, 3, 4, 1, 2)


class _Products(torch.autograd.Function):
    """Recomputes the unfolded images in the backward pass, because they are k·k times as large as the images."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        return _product(x, weight)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, weight = context.saved_tensors
        n, out_channels, in_channels, k, _ = weight.shape
        dx = dweight = None
        if context.needs_input_grad[0]:
            dx = _product(grads[0], weight.flip(3, 4).transpose(1, 2))
        if context.needs_input_grad[1]:
            rows = grads[0].reshape(-1, n, out_channels).permute(1, 2, 0)  # [n,O,B*H*W]
            dweight = (
                torch.bmm(rows, _unfolded(x, n, k)).view(n, out_channels, k, k, in_channels).permute(0, 1, 4, 2, 3)
            )
        return dx, dweight


def _product(x: Tensor, weight: Tensor) -> Tensor:
    b, h, w = x.shape[:3]
    n, out_channels, _, k, _ = weight.shape
    y = x.new_empty(b, h, w, n, out_channels)
    kernel = weight.permute(0, 3, 4, 2, 1).reshape(n, -1, out_channels)
    torch.bmm(_unfolded(x, n, k), kernel, out=y.view(-1, n, out_channels).transpose(0, 1))
    return y


def _unfolded(x: Tensor, n: int, k: int) -> Tensor:
    """Return the k·k neighbourhood of each pixel as matrix rows, [n,B*H*W,k*k*I]."""
    b, h, w, images, in_channels = x.shape
    if k > 1:
        padded_input = F.pad(x, (0, 0, 0, 0, k // 2, k // 2, k // 2, k // 2))
        x = padded_input.unfold(1, k, 1).unfold(2, k, 1).permute(3, 0, 1, 2, 5, 6, 4)
        rows = x.reshape(images, b * h * w, k * k * in_channels)
    else:
        rows = x.reshape(b * h * w, images, in_channels).transpose(0, 1)
    return rows.expand(n, -1, -1)


EPS = 1e-5
_aten = torch.ops.aten


def norm_groups(channels: int) -> int:
    """Return the number of groups: the largest of 32, 16, …, 1 that divides `channels` and leaves 16 or more in each.

    If none of them leaves 16, return the largest that divides `channels`.
    """
    divisors = [g for g in (32, 16, 8, 4, 2, 1) if channels % g == 0]
    return next((g for g in divisors if channels // g >= 16), divisors[0])


def group_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Return group normalisation of each network on its own; x [B,H,W,N,C], gain and bias [N,C].

    If x has lower precision than gain and bias, it is normalised in their precision, and the result is converted back.
    """
    b, h, w, n, c = x.shape
    image = x.reshape(b, h, w, n * c).permute(0, 3, 1, 2).to(gain.dtype)
    y = cast(Tensor, _GroupNorm.apply(image, gain.flatten(), bias.flatten(), n * norm_groups(c)))  # type: ignore[no-untyped-call]
    return y.to(x.dtype).permute(0, 2, 3, 1).reshape(x.shape)


class _GroupNorm(torch.autograd.Function):
    """torch's group norm with two workarounds for its backward pass.

    torch 2.13 on a CPU crashes the process if the image needs no gradient, so all gradients are computed. CUDA kernels
    read images and gradients as NCHW, whatever their layout.
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
    if _device.is_cpu(image.device):
        return torch.channels_last
    return torch.contiguous_format


def _extents(image: Tensor) -> tuple[int, int, int]:
    """Return the numbers of samples, channels and pixels."""
    return image.shape[0], image.shape[1], image.shape[2] * image.shape[3]
