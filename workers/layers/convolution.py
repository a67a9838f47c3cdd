"""Convolution of n networks side by side, forward and backward, by the kernel that suits the shape.

The choice follows from shapes alone, so it is the same in every worker and for every group of an experiment.

A CPU's vector holds 16 numbers: a 3x3 convolution to 8 channels leaves half of it empty. Where many networks look at
data, two of them count as one of 16 channels, each with zeros for the other's image; so do four whose kernels are one
number for each channel, which have hardly any arithmetic at all. Only data may be so shared: zero times a feature that
overflowed is not zero, and one network would spoil the other. The gradient of an image of 8 channels from an output of
16 is a convolution with the turned kernel, which is faster than torch's own way to it.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.layers import device as _device

_NARROW = 8  # channels: matrix products with so few columns are slow
_BIG, _BIG_NARROW = 200_000, 100_000  # numbers read and written, from which setting up a convolution pays
_LANES = 16  # numbers in a CPU's vector
_aten = torch.ops.aten


def as_image(x: Tensor) -> Tensor:
    """x [B,H,W,N,C] as a channels-last image [B,N*C,H,W], copied only where N*C is not dense in memory."""
    b, h, w, n, c = x.shape
    return x.reshape(b, h, w, n * c).permute(0, 3, 1, 2)


def _rows(image: Tensor, n: int) -> Tensor:
    """A channels-last image [B,n*C,H,W] as matrices [n,B*H*W,C]: a view where its pixels are equally far apart."""
    flat = image.permute(0, 2, 3, 1)
    return flat.reshape(-1, n, flat.shape[3] // n).transpose(0, 1)


def _by_products(image: Tensor, kernel: Tensor, n: int) -> bool:
    """1x1 kernels are matrix products, with no set-up per call; those over many interleaved rows are slow."""
    if kernel.shape[-1] > 1:
        return False
    b, channels, h, w = image.shape
    return by_products(b * h * w * n, channels // n, kernel.shape[0] // n)


def by_products(rows: int, into: int, out: int) -> bool:
    """_by_products of so many rows of all networks together."""
    return rows * (into + out) <= (_BIG_NARROW if min(into, out) <= _NARROW else _BIG)


def _half_empty(image: Tensor, channels: int, k: int) -> bool:
    """Whether a convolution to so many channels of one network leaves half of a CPU's vectors empty."""
    return _device.is_cpu(image.device) and k == 3 and 2 * channels <= _LANES


def _at_once(image: Tensor, kernel: Tensor, n: int) -> int:
    """How many networks' convolutions of data count as one: two that leave vectors half empty, four of one channel."""
    if _half_empty(image, kernel.shape[0] // n, kernel.shape[-1]):
        return 2 if n % 2 == 0 else 1
    if _device.is_cpu(image.device) and kernel.shape[-1] == kernel.shape[1] == 1:
        return next(times for times in (4, 2, 1) if n % times == 0)
    return 1


def _joined(kernel: Tensor, n: int, times: int) -> Tensor:
    """[n*O,I,k,k] -> [n*O,times*I,k,k]: so many networks count as one, with zeros for the others' images."""
    _, into, k, _ = kernel.shape
    own = kernel.view(n // times, times, -1, into, k, k)
    all_ = kernel.new_zeros(n // times, times, own.shape[2], k, k, times, into)
    all_.diagonal(dim1=1, dim2=5).copy_(own.permute(0, 2, 4, 5, 3, 1))
    return all_.view(-1, k, k, times * into).permute(0, 3, 1, 2)


def _turned(kernel: Tensor, n: int) -> Tensor:
    """The kernel [n*I,O,k,k] with which the gradient of the image is a convolution of that of the output."""
    _, into, k, _ = kernel.shape
    return kernel.view(n, -1, into, k, k).flip(3, 4).transpose(1, 2).reshape(n * into, -1, k, k)


def convolve(image: Tensor, kernel: Tensor, n: int, of_data: bool = False) -> Tensor:
    """Same-padded convolution of n networks, channels last: [B,n*I,H,W], [n*O,I,k,k] -> [B,n*O,H,W].

    `of_data`: the image is data, finite for all networks.
    """
    k = kernel.shape[-1]
    joined = _at_once(image, kernel, n) if of_data else 1
    if joined > 1:
        kernel, n = _joined(kernel, n, joined), n // joined
    if k > 1 or (joined == 1 and not _by_products(image, kernel, n)):
        y = F.conv2d(image, kernel.contiguous(memory_format=torch.channels_last), padding=k // 2, groups=n)
        return y.contiguous(memory_format=torch.channels_last)  # as it is already, but for some kernels of GPUs
    b, _, h, w = image.shape
    y = image.new_empty(b, h, w, kernel.shape[0]).permute(0, 3, 1, 2)
    torch.bmm(_rows(image, n), kernel.reshape(n, -1, kernel.shape[1]).transpose(1, 2), out=_rows(y, n))
    return y


def convolve_backward(
    grad: Tensor, image: Tensor, kernel: Tensor, n: int, into_image: bool
) -> tuple[Tensor | None, Tensor]:
    """Gradients for image (None unless asked for) and kernel."""
    k, into = kernel.shape[-1], kernel.shape[1]
    if not _by_products(image, kernel, n):
        kernel = kernel.contiguous(memory_format=torch.channels_last)
        filled = kernel.shape[0] >= _LANES * n  # by the output
        turned = into_image and n > 1 and filled and _half_empty(image, into, k)
        padding, needed = [k // 2, k // 2], [into_image and not turned, True, False]
        dimage, dkernel, _ = _aten.convolution_backward(
            grad, image, kernel, None, [1, 1], padding, [1, 1], False, [0, 0], n, needed
        )
        return (convolve(grad, _turned(kernel, n), n) if turned else dimage), dkernel
    rows, weight = _rows(grad, n), kernel.view(n, -1, into)
    dkernel = torch.bmm(rows.transpose(1, 2), _rows(image, n)).view(kernel.shape)
    if not into_image:
        return None, dkernel
    dimage = torch.empty_like(image, memory_format=torch.channels_last)
    torch.bmm(rows, weight, out=_rows(dimage, n))
    return dimage, dkernel


class _Convolution(torch.autograd.Function):
    """A channels-last image [B,n*I,H,W] and kernel [n*O,I,k,k] -> [B,n*O,H,W]."""

    @staticmethod
    def forward(context: Any, image: Tensor, kernel: Tensor, n: int) -> Tensor:
        context.save_for_backward(image, kernel)
        context.n = n
        return convolve(image, kernel, n)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, None]:
        image, kernel = context.saved_tensors
        grad = grads[0].contiguous(memory_format=torch.channels_last)
        return *convolve_backward(grad, image, kernel, context.n, context.needs_input_grad[0]), None


def grouped(image: Tensor, kernel: Tensor, n: int) -> Tensor:
    """Same-padded convolution of n networks, differentiable: channels-last [B,n*I,H,W], [n*O,I,k,k] -> [B,n*O,H,W]."""
    return cast(Tensor, _Convolution.apply(image, kernel, n))  # type: ignore[no-untyped-call]
