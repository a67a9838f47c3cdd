"""The ordinary way to train the same hosts: plain modules, one environment after another, one optimiser each.

It is as fast as this structure allows: channels-last tensors (faster here than the default layout), pool before ReLU,
fused SGD, gradients set to None, no unnecessary synchronisation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from esper_ab.contracts.settings import GrowthSettings
from workers.kinds.growth.datasets.task import HostSpec
from workers.kinds.growth.layers.operations import norm_groups
from workers.kinds.growth.vocabulary import Algorithm, Stage

_TINY = 1e-12


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(norm_groups(channels), channels)


def _conv(inputs: int, outputs: int, kernel: int, groups: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False, groups=groups)


class Norm(nn.Module):
    """x + tanh(scale)·(GN(x) − x)."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.norm = _norm(c)
        self.scale = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        # torch 2.13's group norm crashes in its backward on a channels-last input that needs no gradient
        return x + torch.tanh(self.scale) * (self.norm(x.contiguous()) - x)


class Attention(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, c: int) -> None:
        super().__init__()
        hidden = max(1, c // 4)
        self.squeeze = nn.Linear(c, hidden, bias=False)
        self.excite = nn.Linear(hidden, c)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(self.excite(F.silu(self.squeeze(x.mean((2, 3))))))[:, :, None, None]


class Residual(nn.Module):
    """x + body(x)."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x)


def _bottleneck(c: int) -> nn.Module:
    width = max(8, c // 4)
    return Residual(_conv(c, width, 1), nn.ReLU(), _conv(width, width, 3), nn.ReLU(), _conv(width, c, 1), _norm(c))


BLUEPRINTS: dict[str, Callable[[int], nn.Module]] = {
    "norm": Norm,
    "attention": Attention,
    "depthwise": lambda c: Residual(_conv(c, c, 3, c), _conv(c, c, 1), _norm(c), nn.ReLU()),
    "bottleneck": _bottleneck,
    "conv_small": lambda c: Residual(_conv(c, c, 1), _norm(c), nn.ReLU()),
    "conv_light": lambda c: Residual(_conv(c, c, 3), _norm(c), nn.ReLU()),
    "conv_heavy": lambda c: Residual(_conv(c, c, 3), _norm(c), nn.ReLU(), _conv(c, c, 3), _norm(c), nn.ReLU()),
}


class Seed(nn.Module):
    """A blueprint with its blend: incubating, or at `alpha` under one algorithm, fossil or not."""

    def __init__(self, blueprint: str, c: int, stage: int, alpha: float, algorithm: int) -> None:
        super().__init__()
        self.module = BLUEPRINTS[blueprint](c)
        self.stage = stage
        self.alpha = alpha
        self.algorithm = algorithm
        self.gate: nn.Sequential | None = None
        if algorithm == Algorithm.GATE and stage != Stage.TRAINING:
            hidden = max(8, c // 4)
            self.gate = nn.Sequential(nn.Linear(c, hidden), nn.SiLU(), nn.Linear(hidden, 1), nn.Sigmoid())

    def forward(self, h: Tensor) -> Tensor:
        x = h if self.stage == Stage.FOSSILIZED else h.detach()
        d = self.module(x) - x
        if self.stage != Stage.TRAINING and self.algorithm == Algorithm.MULTIPLY:
            return h * (1.0 + self.alpha * torch.tanh(d))
        size_h = h.detach().square().mean((1, 2, 3), keepdim=True).sqrt()
        shrink = size_h * torch.rsqrt(d.square().mean((1, 2, 3), keepdim=True).clamp_min(_TINY))
        bounded_delta = d * shrink.clamp(max=1.0)
        if self.stage == Stage.TRAINING:
            return h + bounded_delta - bounded_delta.detach()
        if self.gate is not None:
            bounded_delta = bounded_delta * self.gate(x.mean((2, 3)))[:, :, None, None]
        return h + self.alpha * bounded_delta


class Host(nn.Module):
    """conv, batch norm, pool, ReLU per block, a seed or none behind each; global average pool and a linear layer."""

    def __init__(self, spec: HostSpec) -> None:
        super().__init__()
        widths = [spec.in_channels, *(spec.base << block for block in range(spec.levels))]
        pairs = list(pairwise(widths))
        self.convs = nn.ModuleList(_conv(inputs, outputs, spec.kernel) for inputs, outputs in pairs)
        self.norms = nn.ModuleList(nn.BatchNorm2d(outputs) for outputs in widths[1:])
        self.seeds = nn.ModuleList(nn.Identity() for _ in pairs)
        self.head = nn.Linear(widths[-1], spec.classes)
        self.pools = spec.pools

    def forward(self, x: Tensor) -> Tensor:
        for block, (conv, norm, seed) in enumerate(zip(self.convs, self.norms, self.seeds, strict=True)):
            x = norm(conv(x))
            x = seed(F.relu(F.max_pool2d(x, 2) if block < self.pools else x))
        logits: Tensor = self.head(x.mean((2, 3)))
        return logits

    def host_parameters(self) -> list[nn.Parameter]:
        """In the order of the bank's flat rows: per block kernel, gain and bias; the head."""
        blocks = zip(self.convs, self.norms, strict=True)
        return [p for conv, norm in blocks for p in (*conv.parameters(), *norm.parameters())] + [
            *self.head.parameters()
        ]


def seed_parameters(seed: Seed) -> list[nn.Parameter]:
    """In the order of the bank's flat rows: what belongs to layers, what belongs to the module itself, the gate."""
    layers = [p for layer in seed.module.children() for p in layer.parameters()]
    gate = [] if seed.gate is None else list(seed.gate.parameters())
    return [*layers, *seed.module.parameters(recurse=False), *gate]


def fill(parameters: Iterable[nn.Parameter], flat_row: Tensor) -> None:
    """Set parameters from a flat row of a bank, where a linear layer's matrix lies [in, out]."""
    start = 0
    with torch.no_grad():
        for p in parameters:
            part = flat_row[start : start + p.numel()]
            p.copy_(part.view(p.shape[1], p.shape[0]).T if p.dim() == 2 else part.view(p.shape))
            start += p.numel()


def flat(parameters: Iterable[nn.Parameter]) -> Tensor:
    """The inverse of `fill`."""
    return torch.cat([(p.T if p.dim() == 2 else p).reshape(-1) for p in parameters]).detach()


class Loop:
    """Hosts trained one after the other."""

    def __init__(self, hosts: list[Host], settings: GrowthSettings) -> None:
        self.hosts = [host.to(memory_format=torch.channels_last).train() for host in hosts]  # type: ignore[call-overload]
        self._settings = settings
        self._clipped = [
            [host.host_parameters(), *(seed_parameters(s) for s in host.seeds if isinstance(s, Seed))] for host in hosts
        ]
        self._optimisers = [self._optimiser(groups) for groups in self._clipped]

    def _optimiser(self, groups: list[list[nn.Parameter]]) -> torch.optim.SGD:
        rule = self._settings
        host_parameters, *seeds = groups
        sets = [{"params": host_parameters, "weight_decay": rule.weight_decay}]
        if seeds:
            sets.append({"params": [p for seed in seeds for p in seed], "lr": rule.seed_lr, "weight_decay": 0.0})
        return torch.optim.SGD(sets, lr=rule.host_lr, momentum=rule.momentum, fused=True)

    def train_epoch(self, x: Tensor, y: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        """x [N,C,H,W], y [N], order [n, samples] -> mean loss [n] and accuracy in percent [n]."""
        losses = []
        hits = []
        for env, forward in enumerate(self.hosts):
            loss_sum = torch.zeros((), dtype=x.dtype)
            correct_samples = torch.zeros((), dtype=torch.int64)
            for batch in order[env].split(self._settings.batch_size):
                labels = y[batch]
                logits = forward(x[batch])
                loss = F.cross_entropy(logits, labels)
                self._optimisers[env].zero_grad(set_to_none=True)
                loss.backward()
                for parameters in self._clipped[env]:
                    nn.utils.clip_grad_norm_(parameters, self._settings.max_grad_norm)
                self._optimisers[env].step()
                loss_sum += loss.detach() * len(batch)
                correct_samples += (logits.detach().argmax(1) == labels).sum()
            losses.append(loss_sum / order.shape[1])
            hits.append(100.0 * correct_samples / order.shape[1])
        return torch.stack(losses), torch.stack(hits)
