"""What a training epoch is: plain layers, autograd and SGD, one network after the other, as the formulas say.

`Networks` holds n networks in one precision; `trained` changes copies of them and says what came out.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from esper_ab.contracts.settings import GrowthSettings
from workers.datasets.task import Task
from workers.growth.bank.network import (
    BatchStatistics,
    Blend,
    channels,
    fresh_statistics,
    gate_params,
    head_forward,
    host_params,
    level_forward,
    seed_delta,
    seed_input,
)
from workers.growth.bank.stack import Stack
from workers.growth.rules.seeds import SeedTable
from workers.growth.samples import DeviceSplit
from workers.layers.blueprint import Blueprint
from workers.vocabulary import Stage

_CPU = torch.device("cpu")
_KERNEL = 4  # extents of a convolution's kernel [out, into, k, k]


@dataclass
class Networks:
    """Hosts, their moments and their seeds, a slot behind every level."""

    task: Task
    blueprints: tuple[Blueprint, ...]
    rule: GrowthSettings
    table: SeedTable
    host: Stack
    statistics: list[BatchStatistics]
    seeds: dict[tuple[int, int], Stack] = field(default_factory=dict)

    @staticmethod
    def drawn(
        task: Task, blueprints: tuple[Blueprint, ...], rule: GrowthSettings, table: SeedTable, rng_seed: int
    ) -> Networks:
        """Float32 networks whose parameters and momenta are drawn, but for momenta of seeds' wide kernels: those that
        lie around a single pixel have never had a gradient, and stay as they are."""
        draws, n, dtype = np.random.default_rng(rng_seed), len(table.stage), torch.float32
        host = Stack(host_params(task.host), n, _CPU, dtype)
        found = Networks(task, blueprints, rule, table, host, fresh_statistics(task.host, n, _CPU, dtype))
        for env, slot in np.argwhere(table.blueprint >= 0):
            key = int(slot), int(table.blueprint[env, slot])
            if key not in found.seeds:
                width = channels(task.host, int(slot))
                found.seeds[key] = Stack((*blueprints[key[1]].params(width), *gate_params(width)), n, _CPU, dtype)
        for stack in (host, *found.seeds.values()):
            stack.birth(slice(None), draws.random((n, stack.width)))
            stack.values += torch.from_numpy(0.2 * draws.standard_normal(stack.values.shape))
            stack.momentum += torch.from_numpy(0.01 * draws.standard_normal(stack.values.shape))
        for stack in found.seeds.values():
            at = 0
            for spec in stack.specs:
                stack.momentum[:, at : at + spec.size] *= spec.shape[-1] == 1 or len(spec.shape) < _KERNEL
                at += spec.size
        return found

    def copy(self, dtype: torch.dtype = torch.float32, noise: float = 0.0) -> Networks:
        """In another precision, or with parameters multiplied by 1 ± noise."""
        found = copy.deepcopy(self)
        for stack in (found.host, *found.seeds.values()):
            stack.values, stack.momentum = stack.values.to(dtype), stack.momentum.to(dtype)
            stack.values *= 1.0 + noise * (2.0 * torch.rand_like(stack.values) - 1.0)
        found.statistics = [BatchStatistics(s.mean.to(dtype), s.var.to(dtype)) for s in found.statistics]
        return found

    def state(self) -> dict[str, Tensor]:
        """All that training changes, by name."""
        stacks = {"host": self.host} | {f"slot {s}, {self.blueprints[b].name}": v for (s, b), v in self.seeds.items()}
        found = {f"{name}, {of}": getattr(stack, of) for name, stack in stacks.items() for of in ("values", "momentum")}
        return found | {f"{of} {i}": getattr(s, of) for i, s in enumerate(self.statistics) for of in ("mean", "var")}


def trained(networks: Networks, split: DeviceSplit, order: np.ndarray) -> tuple[Networks, np.ndarray]:
    """The networks after one epoch, every one in its row of `order` [n,N]; mean loss [n]."""
    networks, losses = copy.deepcopy(networks), []
    for env, own in enumerate(torch.from_numpy(order)):
        loss = torch.zeros((), dtype=split.x.dtype)
        for batch in own.split(networks.rule.batch_size):
            loss += _step(networks, env, split.x[batch], split.y[batch]) * len(batch)
        losses.append(float(loss) / len(own))
    return networks, np.array(losses)


def _step(networks: Networks, env: int, x: Tensor, y: Tensor) -> Tensor:
    rule, at = networks.rule, torch.tensor([env])
    stacks: list[tuple[Stack, float, float, bool]] = [(networks.host, rule.host_lr, rule.weight_decay, True)]
    leaves = [_leaves(networks.host, at)]
    logits = _forward(networks, env, x, leaves, stacks)
    loss = F.cross_entropy(logits, y)
    for (stack, rate, decay, learns), own in zip(stacks, leaves, strict=True):
        grads = torch.autograd.grad(loss, list(own.values()), retain_graph=True, allow_unused=True)
        pairs = zip(grads, own.values(), strict=True)
        flat = torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for g, p in pairs])
        flat = flat * torch.clamp(rule.max_grad_norm / (flat.norm() + 1e-6), max=1.0)
        if learns:
            used = slice(0, len(flat))
            stack.momentum[env, used] = (
                rule.momentum * stack.momentum[env, used] + flat + decay * stack.values[env, used]
            )
            stack.values[env, used] -= rate * stack.momentum[env, used]
    return loss.detach()


def _leaves(stack: Stack, at: Tensor, gate: bool = True) -> dict[str, Tensor]:
    found = {name: value.clone().requires_grad_() for name, value in stack.read(at).items()}
    return {name: value for name, value in found.items() if gate or not name.startswith("gate.")}


def _forward(
    networks: Networks,
    env: int,
    x: Tensor,
    leaves: list[dict[str, Tensor]],
    stacks: list[tuple[Stack, float, float, bool]],
) -> Tensor:
    """Logits [B,classes]; the seeds that take part are added to `leaves` and `stacks`."""
    spec, table, host = networks.task.host, networks.table, leaves[0]
    h = x.permute(0, 2, 3, 1)[:, :, :, None]
    for level, moments in enumerate(networks.statistics):
        own = BatchStatistics(moments.mean[env : env + 1], moments.var[env : env + 1])
        h = level_forward(h, host, spec, level, own, training=True)
        blueprint, stage = int(table.blueprint[env, level]), table.stage[env, level]
        if blueprint < 0 or stage == Stage.GERMINATED:
            continue
        cell = (slice(env, env + 1), level)
        blend = Blend.of(table.stage[cell], table.alpha[cell], table.algorithm[cell], h)
        stack = networks.seeds[level, blueprint]
        leaves.append(_leaves(stack, torch.tensor([env]), gate=blend.ungated is not None))
        stacks.append((stack, networks.rule.seed_lr, 0.0, not table.frozen[env, level]))
        looked = seed_input(h, blend)
        h = h + seed_delta(h, looked, networks.blueprints[blueprint].delta(looked, leaves[-1]), leaves[-1], blend)
    return head_forward(h, host)[0]


def largest_difference(mine: dict[str, Tensor], theirs: dict[str, Tensor]) -> tuple[float, str]:
    """Of everything, against the largest number of its kind; and where."""
    found = [
        (float((mine[k].double() - t.double()).abs().max() / (1e-3 + t.abs().max())), k) for k, t in theirs.items()
    ]
    return max((value if value == value else np.inf, name) for value, name in found)


def alone(networks: Networks, env: int) -> Networks:
    """One of them by itself."""

    def row(stack: Stack) -> Stack:
        found = copy.copy(stack)
        found.values, found.momentum = stack.values[env : env + 1].clone(), stack.momentum[env : env + 1].clone()
        return found

    table = SeedTable(**{name: getattr(networks.table, name)[env : env + 1] for name in vars(networks.table)})
    statistics = [
        BatchStatistics(s.mean[env : env + 1].clone(), s.var[env : env + 1].clone()) for s in networks.statistics
    ]
    seeds = {key: row(stack) for key, stack in networks.seeds.items()}
    return replace(networks, table=table, host=row(networks.host), statistics=statistics, seeds=seeds)
