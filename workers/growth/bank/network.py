"""Many hosts with their seeds as one forward pass: what training differentiates and measuring looks at.

How seeds join the host's features, that is, the delta that a slot adds for all rows that hold a seed in it; the host
level by level, which knows no seed; the seeds of a slot over the rows of the activations, which know no table; and all
of it together.

With h the features, d = s(stop h) − stop h and d̂ = d·min(1, rms(h)/rms(d)):
TRAINING y = h + d̂ − stop(d̂); ADD y = h + α·d̂; MULTIPLY y = h·(1 + α·tanh(d)); GATE y = h + α·g(stop h)·d̂.
So ∂y/∂h = I for ADD at any α until the seed is fossilised: host and slots upstream keep learning. That is a biased host
gradient, on purpose; a fossil is part of the host: no stop, same forward.
The bound is there because nothing else stops an incubating seed's delta from growing: its output is not in the loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from workers.arrays import Bools, Floats, Ints
from workers.datasets.task import HostSpec
from workers.growth.bank.stack import Places, Stack
from workers.layers.blueprint import Blueprint, Params, ParamSpec, conv_params, fan_in_bound, linear, pooled
from workers.layers.operations import conv
from workers.vocabulary import Algorithm, Stage

TINY = 1e-12  # of a mean square: keeps the gradient of an exact identity finite


@dataclass(frozen=True)
class Blend:
    """How each of n rows blends; [n, 1]. A mask that no row needs is None."""

    live: Tensor  # factor of d̂: 1 while incubating, else alpha
    stopped: Tensor | None  # factor of stop(d̂): 1 while incubating, else 0
    multiply: Tensor | None
    multiplied: Tensor | None  # factor of h·tanh(d): alpha where `multiply` is set, else 0
    ungated: Tensor | None  # None: all
    fossil: Tensor | None

    @staticmethod
    def of(stage: Ints, alpha: Floats, algorithm: Ints, like: Tensor) -> Blend:
        """Coefficients of n seeds, on the device and in the precision of `like`."""
        incubating = stage == Stage.TRAINING
        gated = ~incubating & (algorithm == Algorithm.GATE)
        multiply = ~incubating & (algorithm == Algorithm.MULTIPLY)

        def column(values: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(values[:, None]).to(like.device, non_blocking=True)  # nobody waits for the device

        def mask(selected: Bools) -> Tensor | None:
            return column(selected) if selected.any() else None

        return Blend(
            live=column(np.where(incubating, 1.0, alpha)).to(like.dtype),
            stopped=column(incubating.astype(np.float64)).to(like.dtype) if incubating.any() else None,
            multiply=mask(multiply),
            multiplied=column(multiply * alpha).to(like.dtype) if multiply.any() else None,
            ungated=column(~gated) if gated.any() else None,
            fossil=mask(stage == Stage.FOSSILIZED),
        )


@lru_cache(maxsize=64)  # asked for at every birth and for every slot in every epoch
def gate_params(channels: int) -> tuple[ParamSpec, ...]:
    """The gate network: Linear(C → max(8, C//4)), SiLU, Linear(→ 1), sigmoid on pooled features."""
    hidden = max(8, channels // 4)
    return (
        ParamSpec("gate.hidden.weight", (channels, hidden), bound=fan_in_bound(channels)),
        ParamSpec("gate.hidden.bias", (hidden,), bound=fan_in_bound(channels)),
        ParamSpec("gate.out.weight", (hidden, 1), bound=fan_in_bound(hidden)),
        ParamSpec("gate.out.bias", (1,), bound=fan_in_bound(hidden)),
    )


def gate(x: Tensor, p: Params) -> Tensor:
    """One openness in (0, 1) per sample: x [B,H,W,n,C] -> [B,1,1,n,1]."""
    hidden = F.silu(linear(pooled(x), p["gate.hidden.weight"], p["gate.hidden.bias"]))  # [n,B,hidden]
    opening = torch.sigmoid(linear(hidden, p["gate.out.weight"], p["gate.out.bias"]))  # [n,B,1]
    return opening.transpose(0, 1)[:, None, None]


def bound(delta: Tensor, h: Tensor) -> Tensor:
    """d̂ ÷ delta [B,1,1,n,1]: it shrinks delta to the rms of h, per sample and network over C, H, W.

    Differentiated through delta only.
    """
    rms_h = _mean_square(h.detach()).sqrt()
    inverse_rms = torch.rsqrt(_mean_square(delta).clamp_min(TINY))
    return (rms_h * inverse_rms).clamp(max=1.0)


def _mean_square(x: Tensor) -> Tensor:
    """Return the mean square of each sample in each network: [B,H,W,n,C] -> [B,1,1,n,1]."""
    return x.square().mean((1, 2, 4), keepdim=True)


def seed_input(h: Tensor, blend: Blend) -> Tensor:
    """What the seeds of rows h [B,H,W,n,C] look at: the features behind a stop, for fossils the features themselves."""
    return h.detach() if blend.fossil is None else torch.where(blend.fossil, h, h.detach())


def seed_delta(h: Tensor, x: Tensor, d: Tensor, gates: Params, blend: Blend) -> Tensor:
    """What the seeds add to their rows' features h [B,H,W,n,C]: y = h + delta.

    `x` is seed_input(h, blend), `d` = s(x) − x, `gates` the gates' parameters (looked at only if gated). Features may
    be of less precision than the coefficients: sums and products are in that of the coefficients.
    """
    precise = blend.live.dtype
    wide, d = h.to(precise), d.to(precise)
    added = d
    if blend.multiply is not None:  # what multiplies may be larger than what could be added: 0 · inf is no 0
        added = d.masked_fill(blend.multiply, 0.0)
    factor = blend.live * bound(added, wide)
    if blend.ungated is not None:
        factor = factor * gate(x, gates).masked_fill(blend.ungated, 1.0)
    delta = added * factor
    if blend.stopped is not None:
        delta = delta - blend.stopped * delta.detach()
    if blend.multiplied is not None:
        delta = torch.addcmul(delta, wide * blend.multiplied, torch.tanh(d))
    return delta.to(h.dtype)


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
    if training and image[:, 0].numel() == 1:
        image = _alone(image, mean, var, gain, bias)
    else:
        image = F.batch_norm(image, mean, var, gain, bias, training, BN_MOMENTUM, BN_EPS)
    if level < spec.pools:
        image = F.max_pool2d(image, 2)
    return F.relu(image).permute(0, 2, 3, 1).reshape(*image.shape[:1], *image.shape[2:], *y.shape[3:])


def _alone(image: Tensor, mean: Tensor, var: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Batch norm in training of one value per channel, [1,C,1,1], which torch refuses: the bias is left, no gradient.

    A level that ends at 1x1 meets it where the last batch has one sample. The value's variance counts as 0.
    """
    value = image.detach().flatten()
    mean.lerp_(value.to(mean.dtype), BN_MOMENTUM)
    var.mul_(1.0 - BN_MOMENTUM)
    return ((image - image) * gain.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)).to(image.dtype)


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


GATE_NAMES = tuple(spec.name for spec in gate_params(1))


@dataclass(frozen=True)
class SeedGroup:
    """The seeds of one blueprint in one slot."""

    blueprint: Blueprint
    stack: Stack
    members: Tensor  # [n] rows of the stack
    trained: Tensor | None  # [n] bool; None: all


@dataclass(frozen=True)
class SlotSeeds:
    """All seeds in one slot: each blueprint computes for its own rows, then they blend together."""

    groups: tuple[SeedGroup, ...]
    places: Places | None  # [n] of the activations' rows, group after group; None: all, in order
    blend: Blend  # [n]

    def forward(self, h: Tensor, params: Sequence[Params]) -> Tensor:
        """Features [B,H,W,N,C] with every seed applied to its row; `params` of each group."""
        if not self.groups:
            return h
        mine = h if self.places is None else self.places.pick(h)
        x = seed_input(mine, self.blend)
        parts = torch.split(x, [len(group.members) for group in self.groups], 3)
        d = [group.blueprint.delta(part, p) for group, part, p in zip(self.groups, parts, params, strict=True)]
        gates = {}
        if self.blend.ungated is not None:
            gates = {name: _joined([p[name] for p in params], 0) for name in GATE_NAMES}
        delta = seed_delta(mine, x, _joined(d, 3), gates, self.blend)
        return h + (delta if self.places is None else self.places.put(delta))


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


@dataclass(frozen=True)
class Slot:
    """Seeds with the parameters of each group."""

    seeds: SlotSeeds
    params: Sequence[Params]
    parents: Tensor | None = None  # the row before the slot that each row behind it continues; None: its own


def logits(
    x: Tensor,
    spec: HostSpec,
    hosts: Sequence[Params],
    statistics: Sequence[BatchStatistics],
    slots: Mapping[int, Slot],
    *,
    training: bool,
) -> Tensor:
    """Images [B,H,W,N,C], or [B,H,W,1,C] shown to all hosts -> [N,B,classes].

    `hosts` are the stacked parameters of the rows that there are in each level and, last, in the head; `statistics`
    those of each level, updated in training; `slots` by level.
    """
    h = x
    for level, moments in enumerate(statistics):
        h = level_forward(h, hosts[level], spec, level, moments, training=training)
        if level in slots:
            slot = slots[level]
            h = slot.seeds.forward(h if slot.parents is None else h.index_select(3, slot.parents), slot.params)
    return head_forward(h, hosts[-1])


def side_by_side(images: Tensor, batch: Tensor) -> Tensor:
    """Images [N,H,W,C] by the indices [n,B] of n hosts -> [B,H,W,n,C]."""
    n, b = batch.shape
    return images.index_select(0, batch.T.reshape(-1)).view(b, n, *images.shape[1:]).permute(0, 2, 3, 1, 4)
