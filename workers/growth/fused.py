"""One block of all hosts as one step of autograd: convolution, batch norm, pool and ReLU with a backward of its own.

It computes what host.block_forward does in training mode, with fewer passes over the widest activation, which is what
a host of few channels spends its time on. Two facts carry it:

- Batch norm is monotone in its input, so a maximum commutes with it: rising where the gain is positive, falling where
  it is negative. With the gain's sign moved into the convolution's kernel it always rises; the pool then comes first,
  and normalisation, ReLU and their backward work on a quarter of the pixels.
- The gradient of batch norm (Ioffe and Szegedy 2015, arXiv:1502.03167, section 3) at the wide side is the pooled
  gradient at the pixels that won, plus a multiple of the wide activation and a constant per channel.

The precision of `x` is that of the convolutions and of every activation that is kept for the backward pass; parameters,
moments, sums and what is done to the pooled pixels are in the precision of the parameters.

tests/tensor/test_fused.py holds it against the plain layers, gradients and running moments included.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from workers.blueprints._convolution import convolve, convolve_backward

BN_MOMENTUM = 0.1
BN_EPS = 1e-5
_NARROW = 32  # channels of all networks together
_LONG = 16  # pixels
_aten = torch.ops.aten


def _tiles(width: int, channels: int) -> int:
    """How many pixels count as one row of memory in elementwise work: a loop of its own per 8 channels is slow."""
    return width if channels <= _NARROW and width >= _LONG else 1


def _tiled(values: Tensor, times: int) -> Tensor:
    """One value per channel [C], repeated for so many pixels [times·C]."""
    return values if times == 1 else values.expand(times, -1).reshape(-1)


def _moments(wide: Tensor, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance per channel of a channels-last image [B,C,H,W]; running ones [C] change in place.

    Few channels leave vector lanes empty: then every column of the image counts as a channel of its own, and their
    moments are merged (Chan, Golub and LeVeque 1983, doi:10.1080/00031305.1983.10483115).
    """
    b, c, h, w = wide.shape
    if _tiles(w, c) == 1 or wide.dtype != mean.dtype:
        return cast(tuple[Tensor, Tensor], _aten.batch_norm_update_stats(wide, mean, var, BN_MOMENTUM))
    columns = wide.permute(0, 2, 3, 1).view(b, h, 1, w * c).permute(0, 3, 1, 2)
    means, variances = _aten.batch_norm_update_stats(columns, None, None, BN_MOMENTUM)
    means, variances = means.view(w, c), variances.view(w, c)
    centre = means.mean(0)
    variance = variances.mean(0).add_((means - centre).square_().mean(0))
    samples = b * h * w
    mean.lerp_(centre, BN_MOMENTUM)
    var.lerp_(variance * (samples / max(samples - 1, 1)), BN_MOMENTUM)
    return centre, variance


class _Block(torch.autograd.Function):
    """x [B,H,W,N,I], weight [N,O,I,k,k], gain, bias, running moments [N,O] -> [B,H',W',N,O]; moments in place."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, gain: Tensor, bias: Tensor, moments: Any) -> Tensor:
        mean, var, pooled = moments
        b, h, w, n, into = x.shape
        out, k = weight.shape[1], weight.shape[-1]
        kept, precise = x.dtype, weight.dtype
        image = x.reshape(b, h, w, n * into).permute(0, 3, 1, 2)
        sign = torch.ones_like(gain).copysign_(gain).view(-1)  # [N*O]
        kernel = (weight.reshape(n * out, into, k, k) * sign[:, None, None, None]).to(kept)
        wide = convolve(image, kernel, n)
        turned = mean.view(-1) * sign
        centre, variance = _moments(wide, turned, var.view(-1))
        torch.mul(turned, sign, out=mean.view(-1))
        inverse = torch.rsqrt(variance + BN_EPS)
        top, winners = _aten.max_pool2d_with_indices(wide, [2, 2], [2, 2]) if pooled else (wide, wide)
        h, w = top.shape[2:]
        t = _tiles(w, n * out)
        lines = top.permute(0, 2, 3, 1).view(-1, t * n * out).to(precise)
        normal = torch.addcmul(_tiled(-centre * inverse, t), lines, _tiled(inverse, t))
        z = torch.addcmul(_tiled(bias.reshape(-1), t), normal, _tiled(gain.abs().view(-1), t)).relu_().to(kept)
        context.save_for_backward(image, kernel, wide, winners, normal.to(kept), z, sign, gain, centre, inverse)
        context.pooled = pooled
        return z.view(b, h, w, n, out)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor, Tensor, None]:
        image, kernel, wide, winners, normal, z, sign, gain, centre, inverse = context.saved_tensors
        b, h, w, n, out = grads[0].shape
        kept, precise = z.dtype, gain.dtype
        at_top = _aten.threshold_backward(grads[0].reshape(z.shape), z, 0).to(precise)
        dbias, dgain = at_top.sum(0), (at_top * normal).sum(0)  # of the turned gain, which is not negative
        t = _tiles(w, n * out)
        if t > 1:
            dbias, dgain = dbias.view(t, -1).sum(0), dgain.view(t, -1).sum(0)
        factor = gain.abs().view(-1) * inverse
        pixels = wide.numel() // wide.shape[1]
        slope = -factor * inverse * dgain / pixels
        constant = -factor * dbias / pixels - slope * centre
        pulled = at_top.mul_(_tiled(factor, t)).to(kept).view(b, h, w, -1).permute(0, 3, 1, 2)
        if context.pooled:
            pulled = _aten.max_pool2d_with_indices_backward(
                pulled, wide, [2, 2], [2, 2], [0, 0], [1, 1], False, winners
            )
        t = _tiles(wide.shape[3], n * out)
        lines = pulled.permute(0, 2, 3, 1).view(-1, t * n * out)
        lines.addcmul_(wide.permute(0, 2, 3, 1).view(lines.shape), _tiled(slope, t)).add_(_tiled(constant, t))
        dimage, dkernel = convolve_backward(pulled, image, kernel, n, context.needs_input_grad[0])
        dx = None
        if dimage is not None:
            rows, into, height, width = dimage.shape
            dx = dimage.permute(0, 2, 3, 1).reshape(rows, height, width, n, into // n)
        dweight = (dkernel.to(precise) * sign[:, None, None, None]).view(n, out, *kernel.shape[1:])
        return dx, dweight, (dgain * sign).view(n, out), dbias.view(n, out), None


def block(x: Tensor, weight: Tensor, gain: Tensor, bias: Tensor, moments: tuple[Tensor, Tensor, bool]) -> Tensor:
    """One block in training mode. x [B,H,W,N,I]; weight [N,O,I,k,k]; gain, bias [N,O] -> [B,H',W',N,O].

    `moments`: running mean and variance [N,O], changed in place, and whether the block pools 2x2.
    """
    return cast(Tensor, _Block.apply(x, weight, gain, bias, moments))  # type: ignore[no-untyped-call]
