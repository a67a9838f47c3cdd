"""Convolution of n networks side by side, forward and backward, by the kernel that suits the shape.

The choice follows from shapes alone, so it is the same in every worker and for every group of an experiment.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

_FEW = 2  # networks
_WIDE = 16  # channels
_aten = torch.ops.aten


def _rows(image: Tensor, n: int) -> Tensor:
    """A channels-last image [B,n*C,H,W] as matrices [n,B*H*W,C], without a copy."""
    flat = image.permute(0, 2, 3, 1)
    return flat.view(-1, n, flat.shape[3] // n).transpose(0, 1)


def convolve(image: Tensor, kernel: Tensor, n: int) -> Tensor:
    """Same-padded convolution of n networks, channels last. 1x1 kernels are matrix products: no set-up per call."""
    k = kernel.shape[-1]
    if k > 1:
        y = F.conv2d(image, kernel.contiguous(memory_format=torch.channels_last), padding=k // 2, groups=n)
        return y.contiguous(memory_format=torch.channels_last)  # as it is already, but for some kernels of GPUs
    b, _, h, w = image.shape
    y = image.new_empty(b, h, w, kernel.shape[0]).permute(0, 3, 1, 2)
    torch.bmm(_rows(image, n), kernel.view(n, -1, kernel.shape[1]).transpose(1, 2), out=_rows(y, n))
    return y


def convolve_backward(
    grad: Tensor, image: Tensor, kernel: Tensor, n: int, into_image: bool
) -> tuple[Tensor | None, Tensor]:
    """Gradients for image (None unless asked for) and kernel.

    Strided matrix products with few columns are slow when many networks are interleaved: there the grouped kernel.
    """
    k, into = kernel.shape[-1], kernel.shape[1]
    if k > 1 or (n > _FEW and into < _WIDE):
        kernel = kernel.contiguous(memory_format=torch.channels_last)
        padding, needed = [k // 2, k // 2], [into_image, True, False]
        dimage, dkernel, _ = _aten.convolution_backward(
            grad, image, kernel, None, [1, 1], padding, [1, 1], False, [0, 0], n, needed
        )
        return dimage, dkernel
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
