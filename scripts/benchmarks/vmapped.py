"""The strongest torch baseline found for bare hosts: one step of all by torch.func.vmap, compiled by inductor.

It requires that all hosts share one topology, and each topology takes tens of seconds to compile. So it cannot train
hosts that grow, but it is a fair competitor where it applies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.baseline import Host
from esper_ab.contracts.settings import GrowthSettings

_EPSILON, _TINY = 1e-5, 1e-6  # of batch norm; of clip_grad_norm_


class Vmapped:
    """Bare hosts with parameters stacked [n, ...], and their momentum and running moments."""

    def __init__(self, hosts: list[Host], pools: int, settings: GrowthSettings) -> None:
        named = [dict(host.named_parameters()) for host in hosts]
        self.parameters = {name: torch.stack([one[name].detach() for one in named]) for name in named[0]}
        self._momentum = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        channels = [len(norm.weight) for norm in hosts[0].norms]
        self.moments = [(torch.zeros(len(hosts), c), torch.ones(len(hosts), c)) for c in channels]
        self._levels, self._pools, self._settings = len(channels), pools, settings
        self._step: Callable[..., Any] = torch.compile(torch.vmap(self._one))

    def train_epoch(self, x: Tensor, y: Tensor, order: Tensor) -> None:
        """Train one epoch; x [N,C,H,W], y [N], order [n, samples]."""
        with torch.no_grad():
            for batch in order.split(self._settings.batch_size, dim=1):
                self.parameters, self._momentum, self.moments = self._step(
                    self.parameters, self._momentum, self.moments, x[batch], y[batch]
                )

    def _one(
        self, parameters: dict[str, Tensor], momentum: dict[str, Tensor], moments: list[tuple[Tensor, Tensor]],
        x: Tensor, y: Tensor,
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], list[tuple[Tensor, Tensor]]]:  # fmt: skip
        """Return one host's step: loss, gradient, clip, SGD with momentum and weight decay, running moments."""
        rule = self._settings
        gradients, seen = torch.func.grad(self._loss, has_aux=True)(parameters, x, y)
        size = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
        factor = (rule.max_grad_norm / (size + _TINY)).clamp(max=1.0)
        velocity = {
            name: rule.momentum * momentum[name] + factor * gradient + rule.weight_decay * parameters[name]
            for name, gradient in gradients.items()
        }
        stepped = {name: value - rule.host_lr * velocity[name] for name, value in parameters.items()}
        kept = [(0.9 * a + 0.1 * b, 0.9 * c + 0.1 * d) for (a, c), (b, d) in zip(moments, seen, strict=True)]
        return stepped, velocity, kept

    def _loss(
        self, parameters: dict[str, Tensor], x: Tensor, y: Tensor
    ) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        seen = []
        for level in range(self._levels):
            kernel = parameters[f"convs.{level}.weight"]
            x = F.conv2d(x, kernel, padding=kernel.shape[-1] // 2)
            var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
            count = x.numel() / x.shape[1]
            seen.append((mean.detach(), var.detach() * count / (count - 1)))
            gain = parameters[f"norms.{level}.weight"] * torch.rsqrt(var + _EPSILON)
            shift = parameters[f"norms.{level}.bias"] - mean * gain
            x = x * gain[:, None, None] + shift[:, None, None]
            x = F.relu(F.max_pool2d(x, 2) if level < self._pools else x)
        logits = F.linear(x.mean((2, 3)), parameters["head.weight"], parameters["head.bias"])
        return F.cross_entropy(logits, y), seen
