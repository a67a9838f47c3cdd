"""Many hosts with their seeds as one forward pass, which training differentiates and validation evaluates.

This module has four parts: the delta that a slot adds to the host's features; the host without seeds, level by level;
the seeds of one slot, each applied to its own row of the activations; and the whole network. The seed table is not used
here.

With h the features, d = s(stop h) − stop h and d̂ = d·min(1, rms(h)/rms(d)):

    TRAINING y = h + d̂ − stop(d̂); ADD y = h + α·d̂; MULTIPLY y = h·(1 + α·tanh(d)); GATE y = h + α·g(stop h)·d̂

For ADD, ∂y/∂h = I at any α until the seed is fossilised, so the host and upstream slots keep learning. This host
gradient is biased on purpose. A fossil is part of the host, so its input has no gradient stop; its forward pass does
not change. The bound on d̂ is needed because the output of a seed in TRAINING is not in the loss, so nothing else
limits its delta.
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
from workers.kinds.growth.bank.stack import Places, Stack
from workers.kinds.growth.datasets.task import HostSpec
from workers.kinds.growth.layers.blueprint import (
    Blueprint,
    Params,
    ParamSpec,
    conv_params,
    fan_in_bound,
    linear,
    pooled,
)
from workers.kinds.growth.layers.operations import conv
from workers.kinds.growth.vocabulary import Algorithm, Stage

TINY = 1e-12  # of a mean square: keeps the gradient of an exact identity finite


@dataclass(frozen=True)
class Blend:
    """The blending coefficients of n rows, [n, 1]. A mask is None if no row needs it."""

    live: Tensor  # factor of d̂: 1 while incubating, else alpha
    stopped: Tensor | None  # factor of stop(d̂): 1 while incubating, else 0
    multiply: Tensor | None
    multiplied: Tensor | None  # factor of h·tanh(d): alpha where `multiply` is set, else 0
    ungated: Tensor | None  # None: all
    fossil: Tensor | None

    @staticmethod
    def of(stage: Ints, alpha: Floats, algorithm: Ints, template: Tensor) -> Blend:
        """Return the coefficients of n seeds, on the device and in the precision of `template`."""
        incubating = stage == Stage.TRAINING
        gate_mask = ~incubating & (algorithm == Algorithm.GATE)
        multiply = ~incubating & (algorithm == Algorithm.MULTIPLY)

        def column(values: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(values[:, None]).to(template.device, non_blocking=True)  # does not synchronise

        def mask(slot_mask: Bools) -> Tensor | None:
            return column(slot_mask) if slot_mask.any() else None

        stopped_column = factor_column = ungated_mask = None
        if incubating.any():
            stopped_column = column(incubating.astype(np.float64)).to(template.dtype)
        if multiply.any():
            factor_column = column(multiply * alpha).to(template.dtype)
        if gate_mask.any():
            ungated_mask = column(~gate_mask)
        return Blend(
            live=column(np.where(incubating, 1.0, alpha)).to(template.dtype),
            stopped=stopped_column,
            multiply=mask(multiply),
            multiplied=factor_column,
            ungated=ungated_mask,
            fossil=mask(stage == Stage.FOSSILIZED),
        )


@lru_cache(maxsize=64)  # called at every birth, and for every slot in every epoch
def gate_params(channels: int) -> tuple[ParamSpec, ...]:
    """Return the gate network's parameters: Linear(C → max(8, C//4)), SiLU, Linear(→ 1), sigmoid on pooled features."""
    hidden = max(8, channels // 4)
    return (
        ParamSpec("gate.hidden.weight", (channels, hidden), bound=fan_in_bound(channels)),
        ParamSpec("gate.hidden.bias", (hidden,), bound=fan_in_bound(channels)),
        ParamSpec("gate.out.weight", (hidden, 1), bound=fan_in_bound(hidden)),
        ParamSpec("gate.out.bias", (1,), bound=fan_in_bound(hidden)),
    )


def gate(x: Tensor, p: Params) -> Tensor:
    """Return one openness in (0, 1) per sample: x [B,H,W,n,C] -> [B,1,1,n,1]."""
    hidden = F.silu(linear(pooled(x), p["gate.hidden.weight"], p["gate.hidden.bias"]))  # [n,B,hidden]
    gate_opening = torch.sigmoid(linear(hidden, p["gate.out.weight"], p["gate.out.bias"]))  # [n,B,1]
    return gate_opening.transpose(0, 1)[:, None, None]


def bound(delta: Tensor, h: Tensor) -> Tensor:
    """Return the factor d̂ ÷ delta [B,1,1,n,1] that limits delta to the rms of h, per sample and network over C, H, W.

    Only delta is differentiated.
    """
    rms_h = _mean_square(h.detach()).sqrt()
    inverse_rms = torch.rsqrt(_mean_square(delta).clamp_min(TINY))
    return (rms_h * inverse_rms).clamp(max=1.0)


def _mean_square(x: Tensor) -> Tensor:
    """Return the mean square of each sample in each network: [B,H,W,n,C] -> [B,1,1,n,1]."""
    return x.square().mean((1, 2, 4), keepdim=True)


def seed_input(h: Tensor, blend: Blend) -> Tensor:
    """Return the seeds' input for rows h [B,H,W,n,C]: the features behind a gradient stop, except for fossils."""
    if blend.fossil is None:
        return h.detach()
    return torch.where(blend.fossil, h, h.detach())


def seed_delta(h: Tensor, x: Tensor, d: Tensor, gates: Params, blend: Blend) -> Tensor:
    """Return the deltas that the seeds add to their rows' features h [B,H,W,n,C]: y = h + delta.

    `x` is seed_input(h, blend), `d` = s(x) − x, `gates` the gates' parameters (read only for gated seeds). If features
    have lower precision than the coefficients, sums and products use the coefficients' precision.
    """
    wide_dtype = blend.live.dtype
    wide_input = h.to(wide_dtype)
    d = d.to(wide_dtype)
    added_delta = d
    if blend.multiply is not None:  # masked because 0 · inf is NaN, and a multiplied seed's delta is unbounded
        added_delta = d.masked_fill(blend.multiply, 0.0)
    factor = blend.live * bound(added_delta, wide_input)
    if blend.ungated is not None:
        factor = factor * gate(x, gates).masked_fill(blend.ungated, 1.0)
    delta = added_delta * factor
    if blend.stopped is not None:
        delta = delta - blend.stopped * delta.detach()
    if blend.multiplied is not None:
        delta = torch.addcmul(delta, wide_input * blend.multiplied, torch.tanh(d))
    return delta.to(h.dtype)


BN_MOMENTUM = 0.1
BN_EPS = 1e-5


def channels(spec: HostSpec, level: int) -> int:
    """Return the number of channels after `level` and in its slot."""
    return int(spec.base * 2**level)


def host_params(spec: HostSpec) -> tuple[ParamSpec, ...]:
    """Return the parameters of one host in forward order."""
    params: list[ParamSpec] = []
    in_channels = spec.in_channels
    for level in range(spec.levels):
        out_channels = channels(spec, level)
        params.append(conv_params(f"{level}.conv", out_channels, in_channels, spec.kernel))
        params.append(ParamSpec(f"{level}.bn.gain", (out_channels,), center=1.0))
        params.append(ParamSpec(f"{level}.bn.bias", (out_channels,)))
        in_channels = out_channels
    bound = fan_in_bound(in_channels)
    params.append(ParamSpec("head.weight", (in_channels, spec.classes), bound=bound))
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
    """Apply conv, batch norm, pool (if any) and ReLU to x [B,H,W,N or 1 (shared),Cin]; returns [B,H',W',N,Cout].

    `p` are stacked parameters [N, …], `statistics` [N, C]; in training, the flat tensors of `statistics` are updated in
    place. ReLU after max-pool equals max-pool after ReLU, at a quarter of the work.
    """
    y = conv(x, p[f"{level}.conv"])
    image = y.flatten(3).permute(0, 3, 1, 2)
    gain = p[f"{level}.bn.gain"].flatten()
    bias = p[f"{level}.bn.bias"].flatten()
    mean = statistics.mean.view(-1)
    var = statistics.var.view(-1)
    if training and image[:, 0].numel() == 1:
        image = _normalise_single_value(image, mean, var, gain, bias)
    else:
        image = F.batch_norm(image, mean, var, gain, bias, training, BN_MOMENTUM, BN_EPS)
    if level < spec.pools:
        image = F.max_pool2d(image, 2)
    samples, _, height, width = image.shape
    return F.relu(image).permute(0, 2, 3, 1).reshape(samples, height, width, *y.shape[3:])


def _normalise_single_value(image: Tensor, mean: Tensor, var: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Return the training batch norm of one value per channel, which is the bias [1,C,1,1]; torch refuses this shape.

    The shape occurs when a level ends at 1x1 and the last batch has one sample. The value's variance counts as 0. The
    image gets no gradient.
    """
    value = image.detach().flatten()
    mean.lerp_(value.to(mean.dtype), BN_MOMENTUM)
    var.mul_(1.0 - BN_MOMENTUM)
    return ((image - image) * gain.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)).to(image.dtype)


def head_forward(x: Tensor, p: Params) -> Tensor:
    """Return the logits [N,B,classes] of [B,H,W,N,C]: global average pool and linear classifier."""
    return linear(pooled(x), p["head.weight"], p["head.bias"])


def fresh_statistics(spec: HostSpec, rows: int, device: torch.device, dtype: torch.dtype) -> list[BatchStatistics]:
    """Return the batch-norm moments of new hosts: mean 0, variance 1."""
    statistics = []
    for level in range(spec.levels):
        size = (rows, channels(spec, level))
        mean = torch.zeros(size, device=device, dtype=dtype)
        var = torch.ones(size, device=device, dtype=dtype)
        statistics.append(BatchStatistics(mean, var))
    return statistics


GATE_NAMES = tuple(spec.name for spec in gate_params(1))


@dataclass(frozen=True)
class SeedGroup:
    """Seeds of one blueprint in one slot."""

    blueprint: Blueprint
    stack: Stack
    members: Tensor  # [n] rows of the stack
    trained: Tensor | None  # [n] bool; None: all


@dataclass(frozen=True)
class SlotSeeds:
    """All seeds in one slot. Each blueprint computes its own rows; then all rows are blended together."""

    groups: tuple[SeedGroup, ...]
    places: Places | None  # [n] of the activations' rows, group after group; None: all, in order
    blend: Blend  # [n]

    def forward(self, h: Tensor, params: Sequence[Params]) -> Tensor:
        """Return features [B,H,W,N,C] with every seed applied to its row; `params`: the parameters of each group."""
        if not self.groups:
            return h
        own_input = h if self.places is None else self.places.pick(h)
        x = seed_input(own_input, self.blend)
        parts = torch.split(x, [len(group.members) for group in self.groups], 3)
        d = [group.blueprint.delta(part, p) for group, part, p in zip(self.groups, parts, params, strict=True)]
        gates = {}
        if self.blend.ungated is not None:
            gates = {name: _joined([p[name] for p in params], 0) for name in GATE_NAMES}
        delta = seed_delta(own_input, x, _joined(d, 3), gates, self.blend)
        if self.places is not None:
            delta = self.places.put(delta)
        return h + delta

    def places_of_groups(self, count: int) -> list[Places]:
        """Return, for each group, the places of its rows among the `count` rows of the activations."""
        if not self.groups:
            return []
        if self.places is None:
            rows = torch.arange(count, device=self.blend.live.device)
        else:
            rows = self.places.rows
        return [
            Places.of(group_rows, count)
            for group_rows in torch.split(rows, [len(group.members) for group in self.groups])
        ]


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


@dataclass(frozen=True)
class Slot:
    """The seeds of a slot, with the parameters of each group."""

    seeds: SlotSeeds
    params: Sequence[Params]
    parents: Tensor | None = None  # for each row behind the slot, the row before it; None: the same row


def logits(
    x: Tensor,
    spec: HostSpec,
    hosts: Sequence[Params],
    statistics: Sequence[BatchStatistics],
    slots: Mapping[int, Slot],
    *,
    training: bool,
) -> Tensor:
    """Return logits [N,B,classes] for images [B,H,W,N,C], or [B,H,W,1,C] shared by all hosts.

    `hosts`: stacked parameters of the rows in each level and, last, in the head. `statistics`: moments of each level,
    updated in training. `slots`: the slots by level.
    """
    h = x
    for level, moments in enumerate(statistics):
        h = level_forward(h, hosts[level], spec, level, moments, training=training)
        if level in slots:
            slot = slots[level]
            if slot.parents is not None:
                h = h.index_select(3, slot.parents)
            h = slot.seeds.forward(h, slot.params)
    return head_forward(h, hosts[-1])


def side_by_side(images: Tensor, batch: Tensor) -> Tensor:
    """Return images [N,H,W,C], selected by the indices [n,B] of n hosts, as [B,H,W,n,C]."""
    n, b = batch.shape
    chosen_images = images.index_select(0, batch.T.reshape(-1))
    return chosen_images.view(b, n, *images.shape[1:]).permute(0, 2, 3, 1, 4)
