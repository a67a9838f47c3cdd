"""Seeds of one slot whose blueprints are chains of layers that end in a norm, forward and backward written out.

Where few environments hold the same blueprint a step costs its calls, not its arithmetic. So blueprints share calls at
both ends of their chains: first convolutions of one shape are one convolution, where it is small, and the norms at the
ends are one norm. Which members are neighbours in the slot follows from `standing`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import torch
from torch import Tensor

from workers.blueprints import _device
from workers.blueprints._blueprint import Back, Blueprint, Conv, Grads, Inner, Norm, Params, Relu, Towards
from workers.blueprints._by_hand import convolve_together, run, towards, unwind
from workers.blueprints._norm import Normed, norm_backward, norm_forward

_SMALL = 1 << 20  # multiply-adds of one network's convolution, below which the call costs more on a CPU
_ALONE = 3
_aten = torch.ops.aten

# Gradients of the outputs, whether those of the inputs may be needed -> those of the inputs.
_Pulled = Callable[[list[Tensor], bool], list[Tensor | None]]


def ends_in(blueprint: Blueprint) -> int:
    """What stands behind the norm at the end of its chain: 0 ReLU, 1 nothing, 2 Towards; 3: there is no such norm."""
    match blueprint.residual:
        case (*_, Norm(), Relu()):
            return 0
        case (*_, Norm()):
            return 1
        case (Norm(), Towards()):
            return 2
    return _ALONE


def standing(blueprint: Blueprint) -> tuple[int, ...]:
    """By this seeds are sorted in a slot: those that end alike are neighbours, and among them those that begin alike.

    Wide kernels come before 1x1 ones, which meet those of the next ending; a depthwise one stands beside the wide.
    """
    end, chain = ends_in(blueprint), blueprint.residual
    if end == _ALONE or not isinstance(chain[0], Conv):
        return end, 2, 0
    kernel = next(spec.shape for spec in blueprint.params(8) if spec.name == chain[0].name)
    return end, 0 if chain[0].depthwise else 1, -kernel[-1]


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
        if self.in_chain:
            chain = self.blueprint.residual
            norm = len(chain) - (1 if self.end == 1 else 2)
            self.body = cast(tuple[Inner, ...], chain[:norm])  # up to the norm at the end
            self.norm = cast(Norm, chain[norm]).prefix

    @property
    def in_chain(self) -> bool:
        """Its chain ends in a norm."""
        return self.end < _ALONE


@dataclass(frozen=True)
class _Ended:
    """What the common end left for the backward pass."""

    d: Tensor
    saved: Normed
    with_relu: int  # the first so many of the rows
    towards: list[tuple[Member, slice, Back]]


class Chains:
    """Members in the order of `standing` during one epoch."""

    def __init__(self, members: list[Member]) -> None:
        self._members = members
        self._rows = sum(m.count for m in members)
        self._with_relu = sum(m.count for m in members if m.end == 0)

    def forward(self, x: Tensor) -> Tensor:
        """Features [B,H,W,n,C] of their rows -> s(x) − x."""
        outputs: list[Tensor] = []
        self._begun: list[tuple[list[Member], _Pulled]] = []
        at = 0
        for members in self._beginnings(x):
            rows = sum(m.count for m in members)
            found, pulled = _body(members, x[:, :, :, at : at + rows])
            at += rows
            outputs += found
            self._begun.append((members, pulled))
        y = outputs[0] if len(outputs) == 1 else torch.cat(outputs, 3)
        gain, bias = (torch.cat([m.params[f"{m.norm}.{name}"] for m in self._members]) for name in ("gain", "bias"))
        d, saved = norm_forward(y, gain, bias)
        if self._with_relu:
            (d if self._with_relu == self._rows else d[:, :, :, : self._with_relu]).relu_()
        self._ended = _Ended(d, saved, self._with_relu, self._towards(d, x))
        return d

    def _towards(self, d: Tensor, x: Tensor) -> list[tuple[Member, slice, Back]]:
        """Those that go a part of the way only; in place."""
        found, end = [], self._rows
        for member in reversed(self._members):
            if member.end != 2:
                break
            rows = slice(end - member.count, end)
            end -= member.count
            layer = cast(Towards, member.blueprint.residual[-1])
            mine = d[:, :, :, rows]
            moved, back = towards(layer, mine, x[:, :, :, rows], member.params)
            mine.copy_(moved)
            found.append((member, rows, back))
        return found

    def _beginnings(self, x: Tensor) -> list[list[Member]]:
        """Neighbours whose first convolutions are one, most members by themselves."""
        found: list[list[Member]] = []
        last = None
        for member in self._members:
            shape = _first_shape(member, x)
            if shape is not None and shape == last:
                found[-1].append(member)
            else:
                found.append([member])
            last = shape
        return found

    def backward(self, gd: Tensor, wanted: bool) -> list[Tensor | None]:
        """Gradient of s(x) − x, which is overwritten, to that of x, of every member by itself.

        None where it is not needed; of no member unless `wanted`. Those of parameters go into the members' `grads`.
        """
        ended = self._ended
        if ended.with_relu:
            rows = slice(None, ended.with_relu)
            part = gd if ended.with_relu == gd.shape[3] else gd[:, :, :, rows]
            _aten.threshold_backward.grad_input(part, ended.d[:, :, :, rows], 0, grad_input=part)
        for member, rows, back in ended.towards:
            part = gd[:, :, :, rows]
            part.copy_(cast(Tensor, back(part, member.grads, True)))
        dy, dgain, dbias = norm_backward(gd, ended.saved)
        into: list[Tensor | None] = []
        at = 0
        for members, pulled in self._begun:
            parts = []
            for member in members:
                rows = slice(at, at + member.count)
                at += member.count
                member.grads[f"{member.norm}.gain"], member.grads[f"{member.norm}.bias"] = dgain[rows], dbias[rows]
                parts.append(dy[:, :, :, rows])
            into += pulled(parts, wanted)
        return self._less(into, gd) if wanted else into

    def _less(self, into: list[Tensor | None], gd: Tensor) -> list[Tensor | None]:
        """What goes a part of the way from x looks at x with the opposite sign, too."""
        for member, rows, _ in self._ended.towards:
            index = self._members.index(member)
            dx = into[index]
            into[index] = None if dx is None else dx - gd[:, :, :, rows]
        return into


def _first_shape(member: Member, x: Tensor) -> tuple[int, ...] | None:
    """Shape of a member's first kernel, if it may be one with those of others.

    On a CPU only a small convolution gains by it, and only a small depthwise one is worth computing as a whole one.
    """
    first = member.body[0] if member.body else None
    if not isinstance(first, Conv):
        return None
    b, h, w = x.shape[:3]
    _, out, into, k, _ = member.params[first.name].shape
    k = 1 if h == w == 1 else k  # _by_hand.effective
    into = out if first.depthwise else into
    small = b * h * w * out * into * k * k <= _SMALL
    if first.depthwise:
        return (out, into, k) if small and k > 1 else None
    return (out, into, k) if small or not _device.is_cpu(x.device) else None


def _body(members: list[Member], x: Tensor) -> tuple[list[Tensor], _Pulled]:
    """Neighbours' chains up to the norm at their ends, the first convolution as one if they are several."""
    if len(members) == 1:
        member = members[0]
        y, tape = run(member.body, x, member.params)
        return [y], lambda g, wanted: [unwind(tape, g[0], member.grads, wanted and member.fossils)]
    counts = [m.count for m in members]
    first = [cast(Conv, m.body[0]) for m in members]
    y, convolved = convolve_together(first, x, [m.params for m in members])
    rest = [
        run(m.body[1:], part, m.params, owned=True) for m, part in zip(members, torch.split(y, counts, 3), strict=True)
    ]

    def pulled(g: list[Tensor], wanted: bool) -> list[Tensor | None]:
        parts = [
            cast(Tensor, unwind(tape, own, m.grads, True)) for m, own, (_, tape) in zip(members, g, rest, strict=True)
        ]
        dx = convolved(torch.cat(parts, 3), [m.grads for m in members], wanted and any(m.fossils for m in members))
        return [None] * len(members) if dx is None else list(torch.split(dx, counts, 3))

    return [y for y, _ in rest], pulled
