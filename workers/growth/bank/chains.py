"""Seeds of one slot whose blueprints are chains of layers that end in a norm, forward and backward written out.

Where few environments hold the same blueprint a step costs its calls, not its arithmetic. So blueprints share calls:
first, second, … convolutions of one shape are one convolution, where they are small, and the norms at the ends of all
chains are one norm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import cast

import torch
from torch import Tensor

from workers.layers import device as _device
from workers.layers.blueprint import Back, Blueprint, Conv, Grads, Inner, Norm, Params, Relu, Towards
from workers.layers.by_hand import BackTogether, convolve_together, run, towards, unwind
from workers.layers.norm import Normed, norm_backward, norm_forward

_SMALL = 1 << 20  # multiply-adds of one network's convolution, below which the call costs more on a CPU
_aten = torch.ops.aten


class End(IntEnum):
    """What stands behind the norm at the end of a chain of layers, in the order of a slot's rows."""

    RELU = 0
    NOTHING = 1
    TOWARDS = 2
    NO_NORM = 3  # or no chain


def ends_in(blueprint: Blueprint) -> End:
    """How its chain ends."""
    match blueprint.residual:
        case (*_, Norm(), Relu()):
            return End.RELU
        case (*_, Norm()):
            return End.NOTHING
        case (*_, Norm(), Towards()):
            return End.TOWARDS
    return End.NO_NORM


@dataclass
class Member:
    """The seeds of one blueprint in the slot: `count` neighbours on the row axis, their parameters and gradients."""

    blueprint: Blueprint
    params: Params
    count: int
    fossils: bool  # some look at the features themselves: the gradient into them is needed
    grads: Grads = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.end = ends_in(self.blueprint)
        self.convs: list[Conv] = []
        self.between: list[list[Inner]] = [[]]  # layers before, between and behind them, up to the norm at the end
        if not self.in_chain:
            return
        chain = self.blueprint.residual
        norm = len(chain) - (1 if self.end is End.NOTHING else 2)
        self.norm = cast(Norm, chain[norm]).prefix
        for layer in cast(tuple[Inner, ...], chain[:norm]):
            if isinstance(layer, Conv):
                self.convs.append(layer)
                self.between.append([])
            else:
                self.between[-1].append(layer)

    @property
    def in_chain(self) -> bool:
        """Its chain ends in a norm."""
        return self.end is not End.NO_NORM


@dataclass(frozen=True)
class _Ended:
    """What the common end left for the backward pass."""

    d: Tensor
    saved: Normed
    towards: list[tuple[int, slice, Back]]  # index of the member, its rows


class Chains:
    """Members in the order of ends_in during one epoch."""

    def __init__(self, members: list[Member]) -> None:
        self._members = members
        self._counts = [m.count for m in members]
        self._rows = sum(self._counts)
        self._with_relu = sum(m.count for m in members if m.end is End.RELU)  # the first so many rows

    # --- forward ----------------------------------------------------------------------------------------------------

    def forward(self, x: Tensor) -> Tensor:
        """Features [B,H,W,n,C] of their rows -> s(x) − x."""
        y = _joined(self._bodies(self._each(x, 3)), 3)
        gain, bias = (_joined([m.params[f"{m.norm}.{name}"] for m in self._members], 0) for name in ("gain", "bias"))
        d, saved = norm_forward(y, gain, bias)
        if self._with_relu:
            (d if self._with_relu == self._rows else d[:, :, :, : self._with_relu]).relu_()
        self._ended = _Ended(d, saved, self._towards(d, x))
        return d

    def _each(self, whole: Tensor, axis: int) -> tuple[Tensor, ...]:
        """Every member's part."""
        return (whole,) if len(self._counts) == 1 else torch.split(whole, self._counts, axis)

    def _bodies(self, parts: tuple[Tensor, ...]) -> list[Tensor]:
        """All chains up to the norm at their ends, the k-th convolutions of all in one round."""
        members = self._members
        self._tapes: list[list[list[Back]]] = [[] for _ in members]
        self._rounds: list[list[tuple[list[int], BackTogether]]] = []
        now = [self._on(index, part) for index, part in enumerate(parts)]
        for k in range(max(len(m.convs) for m in members)):
            done = []
            for group in self._of_one_shape(k, now):
                mine = [members[i] for i in group]
                found, back = convolve_together(
                    [m.convs[k] for m in mine], [now[i] for i in group], [m.params for m in mine]
                )
                for i, y in zip(group, found, strict=True):
                    now[i] = self._on(i, y)
                done.append((group, back))
            self._rounds.append(done)
        return now

    def _on(self, index: int, x: Tensor) -> Tensor:
        """From there to the member's next convolution or to its end."""
        member, tapes = self._members[index], self._tapes[index]
        y, tape = run(member.between[len(tapes)], x, member.params, owned=bool(tapes))
        tapes.append(tape)
        return y

    def _of_one_shape(self, k: int, now: list[Tensor]) -> list[list[int]]:
        """Indices of members whose k-th convolutions are one."""
        if len(self._members) == 1:
            return [[0]]
        groups: dict[object, list[int]] = {}
        for index, member in enumerate(self._members):
            if k < len(member.convs):
                shape = _shape(member.convs[k], now[index], member.params)
                groups.setdefault(index if shape is None else shape, []).append(index)
        return list(groups.values())

    def _towards(self, d: Tensor, x: Tensor) -> list[tuple[int, slice, Back]]:
        """Those that go a part of the way only; in place."""
        found, at = [], 0
        for index, member in enumerate(self._members):
            rows = slice(at, at + member.count)
            at += member.count
            if member.end is End.TOWARDS:
                mine = d[:, :, :, rows]
                layer = cast(Towards, member.blueprint.residual[-1])
                moved, back = towards(layer, mine, x[:, :, :, rows], member.params)
                mine.copy_(moved)
                found.append((index, rows, back))
        return found

    # --- backward ---------------------------------------------------------------------------------------------------

    def backward(self, gd: Tensor, wanted: bool) -> list[Tensor | None]:
        """Gradient of s(x) − x, which is overwritten, to that of x, of every member by itself.

        None where it is not needed; meaningless unless `wanted`. Those of parameters go into the members' `grads`.
        """
        ended = self._ended
        if self._with_relu:
            rows = slice(None, self._with_relu)
            part = gd if self._with_relu == gd.shape[3] else gd[:, :, :, rows]
            _aten.threshold_backward.grad_input(part, ended.d[:, :, :, rows], 0, grad_input=part)
        for index, rows, back in ended.towards:
            part = gd[:, :, :, rows]
            part.copy_(cast(Tensor, back(part, self._members[index].grads, True)))
        dy, *of_norms = norm_backward(gd, ended.saved)
        for name, whole in zip(("gain", "bias"), of_norms, strict=True):
            for member, own in zip(self._members, self._each(whole, 0), strict=True):
                member.grads[f"{member.norm}.{name}"] = own
        into = self._unwound(self._each(dy, 3), wanted)
        for index, rows, _ in ended.towards:  # what goes a part of the way from x has x with a minus
            dx = into[index]
            into[index] = None if dx is None or not wanted else dx - gd[:, :, :, rows]
        return into

    def _unwound(self, dy: tuple[Tensor, ...], wanted: bool) -> list[Tensor | None]:
        """_bodies backwards."""
        members, now = self._members, list[Tensor | None](dy)
        looked = [wanted and m.fossils for m in members]  # whether the gradient of x is needed
        for k in range(len(self._rounds) - 1, -1, -1):
            for group, back in self._rounds[k]:
                mine = [members[i] for i in group]
                g = [cast(Tensor, unwind(self._tapes[i][k + 1], now[i], members[i].grads, True)) for i in group]
                needed = k > 0 or any(looked[i] or members[i].between[0] for i in group)
                for i, dx in zip(group, back(g, [m.grads for m in mine], needed), strict=True):
                    now[i] = dx
        return [
            unwind(tapes[0], g, m.grads, into)
            for tapes, g, m, into in zip(self._tapes, now, members, looked, strict=True)
        ]


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


def _shape(layer: Conv, x: Tensor, p: Params) -> tuple[int, ...] | None:
    """Shape of a convolution's kernel, if it may be one with others.

    On a CPU only a small convolution gains by it; a depthwise one is worth computing as a whole one only if it is.
    """
    b, h, w = x.shape[:3]
    _, out, into, k, _ = p[layer.name].shape
    k = 1 if h == w == 1 else k  # _by_hand.effective
    into = out if layer.depthwise else into
    small = b * h * w * out * into * k * k <= _SMALL
    if layer.depthwise:
        return (out, into, k) if small and k > 1 else None
    return (out, into, k) if small or not _device.is_cpu(x.device) else None
