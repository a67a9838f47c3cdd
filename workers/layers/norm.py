"""Group norm of networks side by side, forward and backward, by the kernel that suits the shape.

torch's kernel takes a group's channels together, which is slow where a group is one channel: there every channel of a
sample is normalised along the memory instead. The kernel takes channels-last images on a CPU only: elsewhere they are
copied to its layout and back. Activations may be of less precision than gain and bias: then so is what is kept, and
all sums are in that of the gain.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.layers import device as _device

EPS = 1e-5
_RUN, _FEW = 16, 16  # numbers of one inner loop, shorter ones cost more than they do; but not those over few pixels
_aten = torch.ops.aten


def norm_groups(channels: int) -> int:
    """Groups of a group norm: the first of 32, 16, …, 1 that leaves 16 channels each, else the first divisor."""
    divisors = [g for g in (32, 16, 8, 4, 2, 1) if channels % g == 0]
    return next((g for g in divisors if channels // g >= 16), divisors[0])


def kernel_layout(device: torch.device) -> torch.memory_format:
    """The layout of images that torch's kernel takes, and gives, on a device.

    On CUDA aten.native_group_norm refuses any other than NCHW, and its backward pass reads gradients as NCHW, which
    older torch releases do not look after.
    """
    return torch.channels_last if _device.is_cpu(device) else torch.contiguous_format


@dataclass(frozen=True)
class Normed:
    """What the backward pass needs: the input and its moments, or the normalised input and its inverse deviation."""

    kept: Tensor  # image [B,N*C,H,W], or lines [B,·,t*N*C]
    mean: Tensor | None
    inverse: Tensor
    gain: Tensor


def norm_forward(x: Tensor, gain: Tensor, bias: Tensor) -> tuple[Tensor, Normed]:
    """x [B,H,W,N,C], gain and bias [N,C] -> of the same shape and precision, and what norm_backward needs."""
    b, h, w, n, c = x.shape
    x = x.contiguous()
    if norm_groups(c) == c and h * w > 1:
        return _along_the_memory(x, gain, bias)
    image = x.view(b, h, w, n * c).permute(0, 3, 1, 2).contiguous(memory_format=kernel_layout(x.device))
    y, mean, inverse = _aten.native_group_norm(
        image.to(gain.dtype), gain.reshape(-1), bias.reshape(-1), b, n * c, h * w, n * norm_groups(c), EPS
    )
    return _features(y.to(x.dtype), n), Normed(image, mean, inverse, gain)


def norm_backward(g: Tensor, saved: Normed) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, gain and bias from that of the output. Every one is computed: torch's kernel needs it so.

    torch 2.13 on the CPU crashes the process when it is told that the input's gradient is not needed
    (tests/unit/workers/layers/test_blueprint.py).
    """
    gain = saved.gain
    n, c = gain.shape
    b, h, w = g.shape[:3]
    if saved.mean is None:
        return _back_along_the_memory(g, saved)
    image = saved.kept.to(gain.dtype)
    grad = g.to(gain.dtype).contiguous().view(b, h, w, n * c).permute(0, 3, 1, 2)
    grad = grad.contiguous(memory_format=kernel_layout(g.device))
    dx, dgain, dbias = _aten.native_group_norm_backward(
        grad, image, saved.mean, saved.inverse, gain.reshape(-1), b, n * c, h * w, n * norm_groups(c), [True] * 3
    )
    return _features(dx.to(g.dtype), n), dgain.view(n, c), dbias.view(n, c)


def _features(image: Tensor, n: int) -> Tensor:
    """An image [B,n*C,H,W] of any layout -> [B,H,W,n,C], channels last."""
    b, channels, h, w = image.shape
    return image.permute(0, 2, 3, 1).contiguous().view(b, h, w, n, channels // n)


def run_length(pixels: int, width: int) -> int:
    """How many pixels of `width` numbers to take as one run of memory: a power of two that divides `pixels`."""
    times = 1
    while pixels > _FEW and pixels % (2 * times) == 0 and times * width < _RUN:
        times *= 2
    return times


def along(values: Tensor, times: int) -> Tensor:
    """Values per row and channel [R,C], repeated for `times` pixels: [R,1,times*C]."""
    rows, width = values.shape
    if times == 1:
        return values[:, None]
    return values[:, None].expand(rows, times, width).reshape(rows, 1, times * width)


def _sums(lines: Tensor, width: int) -> Tensor:
    """Over the pixels: [B,L,t*C] -> [B,C]."""
    found = lines.sum(1)
    return found if found.shape[1] == width else found.view(len(found), -1, width).sum(1)


def _along_the_memory(x: Tensor, gain: Tensor, bias: Tensor) -> tuple[Tensor, Normed]:
    b, h, w, n, c = x.shape
    pixels, width = h * w, n * c
    times = run_length(pixels, width)
    lines = x.view(b, -1, times * width).to(gain.dtype)
    normal = lines - along(_sums(lines, width).div_(pixels), times)
    inverse = torch.rsqrt(_sums(normal.square(), width).div_(pixels).add_(EPS))
    normal.mul_(along(inverse, times))
    y = torch.addcmul(along(bias.reshape(1, -1), times), normal, along(gain.reshape(1, -1), times))
    return y.to(x.dtype).view(x.shape), Normed(normal.to(x.dtype), None, inverse, gain)


def _back_along_the_memory(g: Tensor, saved: Normed) -> tuple[Tensor, Tensor, Tensor]:
    n, c = saved.gain.shape
    b, h, w = g.shape[:3]
    pixels, width = h * w, n * c
    times = run_length(pixels, width)
    lines = g.reshape(b, -1, times * width).to(saved.gain.dtype)
    normal = saved.kept.to(saved.gain.dtype)
    dbias, dgain = _sums(lines, width), _sums(lines * normal, width)  # of every sample
    factor = saved.inverse * saved.gain.reshape(1, -1)
    dx = lines * along(factor, times)
    dx.addcmul_(normal, along(factor * dgain / -pixels, times)).sub_(along(factor * dbias / pixels, times))
    return dx.to(g.dtype).view(g.shape), dgain.sum(0).view(n, c), dbias.sum(0).view(n, c)
