"""The host: what it is made of and its forward pass, level by level, for all environments at once. Knows no seed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.datasets.task import HostSpec
from workers.layers.blueprint import Params, ParamSpec, conv_params, fan_in_bound, linear, pooled
from workers.layers.convolution import conv

BN_MOMENTUM = 0.1
BN_EPS = 1e-5


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
    """conv, batch norm, pool (if any), ReLU: [B,H,W,N,Cin], or [B,H,W,1,Cin] shown to all hosts -> [B,H',W',N,Cout].

    `p` are stacked parameters [N, …], `statistics` [N, C]; in training their flat tensors are updated in place.
    ReLU after max-pool equals max-pool after ReLU, at a quarter of the work.
    """
    y = conv(x, p[f"{level}.conv"])
    image = y.flatten(3).permute(0, 3, 1, 2)
    gain, bias = p[f"{level}.bn.gain"].flatten(), p[f"{level}.bn.bias"].flatten()
    mean, var = statistics.mean.view(-1), statistics.var.view(-1)
    image = F.batch_norm(image, mean, var, gain, bias, training, BN_MOMENTUM, BN_EPS)
    if level < spec.pools:
        image = F.max_pool2d(image, 2)
    return F.relu(image).permute(0, 2, 3, 1).reshape(*image.shape[:1], *image.shape[2:], *y.shape[3:])


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
