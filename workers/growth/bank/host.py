"""The host: what it is made of and its forward pass, level by level, for all environments at once. Knows no seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.datasets.task import HostSpec
from workers.growth.bank.fused import BN_EPS, BN_MOMENTUM
from workers.layers import device as _device
from workers.layers.blueprint import Params, ParamSpec, conv, conv_params, fan_in_bound, linear, pooled


def channels(spec: HostSpec, level: int) -> int:
    """Channels after `level`, which are the channels of its slot."""
    return int(spec.base * 2**level)


def host_params(spec: HostSpec) -> tuple[ParamSpec, ...]:
    """Parameters of one host in forward order."""
    params: list[ParamSpec] = []
    into = spec.in_channels
    for level in range(spec.levels):
        out = channels(spec, level)
        params.append(conv_params(f"{level}.conv", out, into, spec.kernel))
        params.append(ParamSpec(f"{level}.bn.gain", (out,), center=1.0))
        params.append(ParamSpec(f"{level}.bn.bias", (out,)))
        into = out
    bound = fan_in_bound(into)
    params.append(ParamSpec("head.weight", (into, spec.classes), bound=bound))
    params.append(ParamSpec("head.bias", (spec.classes,), bound=bound))
    return tuple(params)


@dataclass
class BatchStatistics:
    """Running batch-norm moments of one level, [rows, C]."""

    mean: Tensor
    var: Tensor


def level_forward(
    x: Tensor, p: Params, spec: HostSpec, level: int, statistics: BatchStatistics, *, training: bool
) -> Tensor:
    """conv, batch norm, pool (if any), ReLU: [B,H,W,N,Cin] -> [B,H',W',N,Cout].

    `p` are stacked parameters [N, …], `statistics` [N, C]; in training their flat tensors are updated in place.
    ReLU after max-pool equals max-pool after ReLU, at a quarter of the work.
    """
    b, h, w, n, _ = x.shape
    y = conv(x, p[f"{level}.conv"])
    out = y.shape[-1]
    image = y.reshape(b, h, w, n * out).permute(0, 3, 1, 2)
    gain, bias = p[f"{level}.bn.gain"].reshape(-1), p[f"{level}.bn.bias"].reshape(-1)
    mean, var = statistics.mean.view(-1), statistics.var.view(-1)
    image = F.batch_norm(image, mean, var, gain, bias, training, BN_MOMENTUM, BN_EPS)
    if level < spec.pools:
        image = F.max_pool2d(image, 2)
    image = F.relu(image)
    h, w = image.shape[2:]
    return image.permute(0, 2, 3, 1).reshape(b, h, w, n, out)


def halved(y: Tensor) -> Tensor:
    """max_pool2d(y, 2) of [B,C,H,W] to the bit, but without the winners' indices that no measurement looks at.

    On a CPU, in channels-last layout: two maxima along the memory, of rows and then of columns, a third of the time.
    """
    b, c, h, w = y.shape
    if not _device.is_cpu(y.device) or h % 2 or w % 2 or not y.is_contiguous(memory_format=torch.channels_last):
        return F.max_pool2d(y, 2)
    pixels = y.permute(0, 2, 3, 1).view(b, h // 2, 2, w // 2, 2 * c)
    rows = torch.maximum(pixels[:, :, 0], pixels[:, :, 1])
    return torch.maximum(rows[..., :c], rows[..., c:]).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class MeasuredLevel:
    """A level in evaluation mode: there batch norm is a factor and a constant per channel, part of the convolution."""

    kernel: Tensor  # [n*O,I,k,k] channels last
    bias: Tensor  # [n*O]
    hosts: int
    pools: bool

    @staticmethod
    def of(p: Params, spec: HostSpec, level: int, statistics: BatchStatistics) -> MeasuredLevel:
        """From stacked parameters [n, …] and running moments [n,O]."""
        weight = p[f"{level}.conv"]
        factor = p[f"{level}.bn.gain"] * torch.rsqrt(statistics.var + BN_EPS)
        kernel = (weight * factor[..., None, None, None]).flatten(0, 1).contiguous(memory_format=torch.channels_last)
        bias = (p[f"{level}.bn.bias"] - statistics.mean * factor).flatten()
        return MeasuredLevel(kernel, bias, len(weight), level < spec.pools)

    def forward(self, image: Tensor, groups: int) -> Tensor:
        """Images side by side [B,n*I,H,W], `groups` = n, or one for all [B,I,H,W], 1 -> [B,H',W',n,O]."""
        k = self.kernel.shape[-1]
        if k == 1 and groups == 1:  # a convolution of one channel would leave the channels-last layout
            b, into, h, w = image.shape
            pixels = image.permute(0, 2, 3, 1).reshape(-1, into)
            y = torch.addmm(self.bias, pixels, self.kernel.view(-1, into).T).view(b, h, w, -1).permute(0, 3, 1, 2)
        else:
            y = F.conv2d(image, self.kernel, self.bias, padding=k // 2, groups=groups)
        y = (halved(y) if self.pools else y).relu_()
        b, channels_out, h, w = y.shape
        return y.permute(0, 2, 3, 1).reshape(b, h, w, self.hosts, channels_out // self.hosts)


def head_forward(x: Tensor, p: Params) -> Tensor:
    """Global average pool and linear classifier: [B,H,W,N,C] -> logits [N,B,classes]."""
    return linear(pooled(x), p["head.weight"], p["head.bias"])


def fresh_statistics(spec: HostSpec, rows: int, device: torch.device, dtype: torch.dtype) -> list[BatchStatistics]:
    """Batch-norm moments of new hosts: mean 0, variance 1."""
    sizes = [channels(spec, level) for level in range(spec.levels)]
    return [
        BatchStatistics(
            torch.zeros(rows, c, device=device, dtype=dtype), torch.ones(rows, c, device=device, dtype=dtype)
        )
        for c in sizes
    ]
