"""One level of all hosts, forward and backward written out: convolution, batch norm, pool and ReLU.

It computes what host.level_forward does in training mode, with fewer passes over the widest activation, which is what
a host of few channels spends its time on. Two facts carry it:

- Batch norm is monotone in its input, so a maximum commutes with it: rising where the gain is positive, falling where
  it is negative. With the gain's sign moved into the convolution's kernel it always rises; the pool then comes first,
  and normalisation, ReLU and their backward work on a quarter of the pixels.
- The gradient of batch norm (Ioffe and Szegedy 2015, arXiv:1502.03167, section 3) at the wide side is the pooled
  gradient at the pixels that won, plus a multiple of the wide activation and a constant per channel.

The precision of the image is that of the convolutions and of every activation that is kept for the backward pass;
parameters, moments, sums and what is done to the pooled pixels are in the precision of the parameters.

Its test holds it against the plain layers, gradients and running moments included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from workers.layers.convolution import convolve, convolve_backward

BN_MOMENTUM = 0.1
BN_EPS = 1e-5
_NARROW = 32  # channels of all networks together
_LONG = 16  # pixels
_aten = torch.ops.aten


def _tiles(width: int, channels: int) -> int:
    """How many pixels count as one row of memory in elementwise work: a loop of its own per 8 channels is slow."""
    return width if channels <= _NARROW and width >= _LONG else 1


def _tiled(rows: Tensor, times: int) -> tuple[Tensor, ...]:
    """Rows [R,C] of one value per channel, each repeated for so many pixels [times·C]."""
    if times > 1:
        rows = rows[:, None].expand(-1, times, -1).reshape(len(rows), -1)
    return rows.unbind()


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
    between, centre = torch.var_mean(means.view(w, c), 0, correction=0)
    variance = variances.view(w, c).mean(0).add_(between)
    samples = b * h * w
    mean.lerp_(centre, BN_MOMENTUM)
    var.mul_(1.0 - BN_MOMENTUM).add_(variance, alpha=BN_MOMENTUM * samples / max(samples - 1, 1))
    return centre, variance


@dataclass(frozen=True)
class BlockParams:
    """Of n hosts: weight [n,O,I,k,k], gain and bias [n,O], running moments [n,O] changed in place, whether it pools."""

    weight: Tensor
    gain: Tensor
    bias: Tensor
    mean: Tensor
    var: Tensor
    pools: bool

    def part(self, rows: slice) -> BlockParams:
        """Of some hosts; views."""
        return BlockParams(
            self.weight[rows], self.gain[rows], self.bias[rows], self.mean[rows], self.var[rows], self.pools
        )


@dataclass(frozen=True)
class Kept:
    """What the backward pass needs."""

    image: Tensor
    kernel: Tensor
    wide: Tensor
    winners: Tensor | None
    normal: Tensor
    z: Tensor
    sign: Tensor
    centre: Tensor
    inverse: Tensor


def level_forward(image: Tensor, p: BlockParams, of_data: bool = False) -> tuple[Tensor, Kept]:
    """A channels-last image [B,n*I,H,W], data or not -> [B,H',W',n,O], and what level_backward needs."""
    n, out, into, k, _ = p.weight.shape
    kept, precise = image.dtype, p.weight.dtype
    sign = torch.ones_like(p.gain).copysign_(p.gain).view(-1)  # [n*O]
    kernel = p.weight.reshape(n * out, into, k, k) * sign.view(-1, 1, 1, 1)
    kernel = kernel.to(kept, memory_format=torch.channels_last)
    wide = convolve(image, kernel, n, of_data)
    turned = p.mean.view(-1) * sign
    centre, variance = _moments(wide, turned, p.var.view(-1))
    torch.mul(turned, sign, out=p.mean.view(-1))
    inverse = torch.rsqrt(variance + BN_EPS)
    top, winners = _aten.max_pool2d_with_indices(wide, [2, 2], [2, 2]) if p.pools else (wide, None)
    b, _, h, w = top.shape
    t = _tiles(w, n * out)
    lines = top.permute(0, 2, 3, 1).view(-1, t * n * out).to(precise)
    rows = torch.stack([torch.mul(centre, inverse).neg_(), inverse, p.bias.reshape(-1), p.gain.abs().view(-1)])
    shift, scale, bias, gain = _tiled(rows, t)
    normal = torch.addcmul(shift, lines, scale)
    z = torch.addcmul(bias, normal, gain).relu_().to(kept)
    saved = Kept(image, kernel, wide, winners, normal.to(kept), z, sign, centre, inverse)
    return z.view(b, h, w, n, out), saved


def level_backward(
    g: Tensor, saved: Kept, gain: Tensor, into_image: bool
) -> tuple[Tensor | None, tuple[Tensor, Tensor, Tensor]]:
    """Gradient of the output [B,H',W',n,O] -> that of the image as [B,H,W,n,I] (None unless asked for), and those of
    weight, gain and bias."""
    z, wide, kernel = saved.z, saved.wide, saved.kernel
    b, h, w, n, out = g.shape
    kept, precise = z.dtype, gain.dtype
    at_top = _aten.threshold_backward(g.reshape(z.shape), z, 0).to(precise)
    dbias, dgain = at_top.sum(0), (at_top * saved.normal).sum(0)  # of the turned gain, which is not negative
    t = _tiles(w, n * out)
    if t > 1:
        dbias, dgain = dbias.view(t, -1).sum(0), dgain.view(t, -1).sum(0)
    factor = gain.abs().view(-1) * saved.inverse
    pixels = wide.numel() // wide.shape[1]
    slope = torch.mul(factor, saved.inverse).mul_(dgain).div_(-pixels)
    constant = torch.mul(factor, dbias).div_(-pixels).addcmul_(slope, saved.centre, value=-1.0)
    pulled = at_top.mul_(*_tiled(factor[None], t)).to(kept).view(b, h, w, -1).permute(0, 3, 1, 2)
    if saved.winners is not None:
        pulled = _aten.max_pool2d_with_indices_backward(
            pulled, wide, [2, 2], [2, 2], [0, 0], [1, 1], False, saved.winners
        )
    t = _tiles(wide.shape[3], n * out)
    lines = pulled.permute(0, 2, 3, 1).view(-1, t * n * out)
    steep, lift = _tiled(torch.stack([slope, constant]), t)
    lines.addcmul_(wide.permute(0, 2, 3, 1).view(lines.shape), steep).add_(lift)
    dimage, dkernel = convolve_backward(pulled, saved.image, kernel, n, into_image)
    dx = None
    if dimage is not None:
        rows, into, height, width = dimage.shape
        dx = dimage.permute(0, 2, 3, 1).reshape(rows, height, width, n, into // n)
    dweight = (dkernel.to(precise) * saved.sign.view(-1, 1, 1, 1)).view(n, out, *kernel.shape[1:])
    return dx, (dweight, (dgain * saved.sign).view(n, out), dbias.view(n, out))
