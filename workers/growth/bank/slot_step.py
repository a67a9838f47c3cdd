"""What a slot's seeds add to the host's features in training, forward and backward written out.

It computes what blend.seed_delta does with s = the blueprints' output; that one says what is meant, this one passes
over the features as seldom as it can. Chains of layers (chains.py) give s(x) − x directly; so do blueprints with their
own backward pass (Blueprint.by_hand); any other goes through autograd. Features may be of less precision than the
blend's coefficients: then so is what is kept, and all sums are in that of the coefficients. test_fused.py holds it
against seed_delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from workers.growth.bank.blend import TINY, Blend, gate_params
from workers.growth.bank.chains import Chains, Member
from workers.growth.bank.rows import writers
from workers.layers import device as _device
from workers.layers import perceptron as _perceptron
from workers.layers.blueprint import Back, Grads, Params, pooled, spread

GATE_NAMES = tuple(spec.name for spec in gate_params(1))
_aten = torch.ops.aten


@dataclass(frozen=True)
class _Joined:
    """What joining the features left for the backward pass; of all rows."""

    h: Tensor
    d: Tensor
    squares: Tensor
    shrink: Tensor
    factor: Tensor  # of d in the gradient
    spread_out: Tensor  # the same over the features
    flows: Tensor
    tanh: Tensor | None  # of the rows that may multiply
    scaled: Tensor | None  # their features times alpha


def _per_network(x: Tensor) -> Tensor:
    """Sum over pixels, then channels: [B,H,W,n,C] -> [B,n]. Pixels first: that sum runs along the memory."""
    return x.sum((1, 2)).sum(2)


def _over(values: Tensor, like: Tensor) -> Tensor:
    """[B,n] -> [B,1,1,n,C], written out: one long inner loop instead of a short one per network."""
    b, n = values.shape
    return values[:, :, None].expand(b, n, like.shape[4]).contiguous()[:, None, None]


class SlotStep:
    """One slot during one epoch. `members` in the order of chains.ends_in; `rows` as bank.SlotSeeds has them."""

    def __init__(self, members: list[Member], rows: Tensor | slice | None, blend: Blend) -> None:
        self.members, self._rows, self._blend = members, rows, blend
        at = blend.multiply_rows
        self._multiplied = blend.live if at is None else blend.live.index_select(0, at)
        self._writers: tuple[Tensor, Tensor] | None = None  # off the CPU, of rows that are no neighbours
        self._multiplying_rows: list[int] | None = None if at is None else at.tolist()
        chained = [m for m in members if m.in_chain]
        self._chained = sum(m.count for m in chained)  # the first so many of the rows
        self._chains = Chains(chained) if chained else None
        self._alone = [m for m in members if not m.in_chain]

    def _mine(self, h: Tensor) -> Tensor:
        if isinstance(self._rows, slice):
            return h[:, :, :, self._rows]
        return h if self._rows is None else h.index_select(3, self._rows)

    def _add(self, h: Tensor, mine: Tensor) -> Tensor:
        """h with `mine` added at the slot's rows, not in place."""
        if self._rows is None:
            return h + mine
        if isinstance(self._rows, Tensor) and not _device.is_cpu(h.device):
            if self._writers is None:
                self._writers = writers(self._rows, h.shape[3])
            at, written = self._writers
            return torch.where(written, h + mine.index_select(3, at), h)
        y = h.clone()
        if isinstance(self._rows, slice):
            y[:, :, :, self._rows] += mine
            return y
        return y.index_add_(3, self._rows, mine)

    def _multiplying(self, x: Tensor) -> Tensor:
        """A copy of x at the rows that multiply; off the CPU of all, where `_put_multiplied` tells them apart."""
        rows = self._blend.multiply_rows
        return x.clone() if rows is None else x.index_select(3, rows)

    def _put_multiplied(self, whole: Tensor, part: Tensor) -> Tensor:
        """`whole`, which is overwritten, with `part` at the rows that multiply, whatever was there: 0 · inf is no 0."""
        rows = self._multiplying_rows
        if rows is None:
            return torch.where(cast(Tensor, self._blend.multiply), part, whole)
        for row, own in zip(rows, part.unbind(3), strict=True):  # index_copy_ is several times slower
            whole.select(3, row).copy_(own)
        return whole

    # --- forward ----------------------------------------------------------------------------------------------------

    def forward(self, h: Tensor) -> Tensor:
        """Features [B,H,W,N,C] with every seed applied to its row."""
        if not self.members:
            return h
        mine = self._mine(h)
        outputs = [] if self._chains is None else [self._chains.forward(mine[:, :, :, : self._chained])]
        parts = torch.split(mine[:, :, :, self._chained :], [m.count for m in self._alone], 3) if self._alone else ()
        alone = [
            (m.blueprint.by_hand or _through_autograd(m))(part, m.params)
            for m, part in zip(self._alone, parts, strict=True)
        ]
        outputs += [d for d, _ in alone]
        self._backs = [back for _, back in alone]
        return self._add(h, self._join(mine, outputs[0] if len(outputs) == 1 else torch.cat(outputs, 3)))

    def _opening(self, mine: Tensor) -> Tensor:
        """The gates' openings [B,n]."""
        sets = [[m.params[name] for m in self.members] for name in GATE_NAMES]
        gates = (of_all[0] if len(of_all) == 1 else torch.cat(of_all) for of_all in sets)
        self._opened = _perceptron.forward(pooled(mine), _perceptron.Layers(*gates))
        return self._opened.out[:, :, 0].T

    def _join(self, mine: Tensor, d: Tensor) -> Tensor:
        """The delta of all rows; blend.py has the formulas."""
        blend, kept = self._blend, mine.dtype
        precise = blend.live.dtype
        h, d_precise = mine.to(precise), d.to(precise)
        squares, tiny = _per_network(d_precise.square()), TINY * h.shape[1] * h.shape[2] * h.shape[4]
        ratio = _per_network(h.square()).sqrt_() * squares.clamp_min(tiny).rsqrt_()
        shrink = ratio.clamp(max=1.0)
        outer = blend.live[:, 0].expand(shrink.shape)  # factor of d̂ in the gradient
        if blend.gated is not None:
            outer = torch.where(blend.gated[:, 0], outer * self._opening(mine), outer)
        factor = outer * shrink  # of d in the gradient
        spread_out = _over(factor, d)
        shown = spread_out if blend.stopped is None else _over(factor * (1.0 - blend.stopped[:, 0]), d)  # in the value
        delta = d_precise * shown
        tanh, scaled = None, None
        if blend.multiply is not None:
            tanh = self._multiplying(d_precise).tanh_()
            scaled = self._multiplying(h).mul_(self._multiplied)
            delta = self._put_multiplied(delta, scaled * tanh)
        flows = (ratio <= 1.0) & (squares >= tiny)
        self._joined = _Joined(mine, d, squares, shrink, factor, spread_out, flows, tanh, scaled)
        return delta.to(kept)

    # --- backward ---------------------------------------------------------------------------------------------------

    def backward(self, g: Tensor) -> Tensor:
        """Gradient of the features that came in; those of the parameters into every member's `grads`."""
        if not self.members:
            return g
        gd, dh = self._part(self._mine(g))
        through = self._into_members(gd)
        if through is not None:  # a fossil looks at the features themselves
            looked = torch.where(cast(Tensor, self._blend.fossil), through, 0.0)
            dh = looked if dh is None else dh.add_(looked)
        return g if dh is None else self._add(g, dh)

    def _part(self, g: Tensor) -> tuple[Tensor, Tensor | None]:
        """Gradients of d and, beyond the identity, of the features, from that of the slot's rows."""
        joined, blend, kept = self._joined, self._blend, g.dtype
        precise = blend.live.dtype
        d, g = joined.d.to(precise), g.to(precise)
        along = _per_network(g * d)
        back = torch.where(joined.flows, joined.factor * along / joined.squares, 0.0)
        gd = (g * joined.spread_out).addcmul_(d, _over(back, d), value=-1.0)
        dh = None
        if blend.multiply is not None:
            tanh, mine = cast(Tensor, joined.tanh), self._multiplying(g)
            dh = self._put_multiplied(torch.zeros_like(d), (mine * tanh).mul_(self._multiplied)).to(kept)
            gd = self._put_multiplied(gd, _aten.tanh_backward(mine.mul_(cast(Tensor, joined.scaled)), tanh))
        if blend.gated is not None:
            opened = torch.where(blend.gated[:, 0], along * joined.shrink * blend.live[:, 0], 0.0)
            looked = self._into_gates(opened)
            if looked is not None:
                dh = looked if dh is None else dh.add_(looked)
        return gd.to(kept), dh

    def _into_gates(self, dopening: Tensor) -> Tensor | None:
        """Gradients of the gates; that of what fossils' gates look at is returned."""
        fossil = self._blend.fossil
        dpooled, own = _perceptron.backward(dopening.T[:, :, None], self._opened, fossil is not None)
        whole = (own.first, cast(Tensor, own.first_bias), own.second, own.second_bias)
        for name, grad in zip(GATE_NAMES, whole, strict=True):
            for member, part in zip(self.members, torch.split(grad, [m.count for m in self.members]), strict=True):
                member.grads[name] = part
        if fossil is None or dpooled is None:
            return None
        b, h, w, n, c = self._joined.h.shape
        looked = spread(dpooled / (h * w), self._joined.h).expand(b, h, w, n, c)
        return torch.where(fossil, looked, 0.0)

    def _into_members(self, gd: Tensor) -> Tensor | None:
        """Gradients of all modules; that of what they look at, if any is needed."""
        wanted = self._blend.fossil is not None
        at = self._chained
        into = [] if self._chains is None else self._chains.backward(gd[:, :, :, :at], wanted)
        for member, back in zip(self._alone, self._backs, strict=True):
            part = gd[:, :, :, at : at + member.count]
            at += member.count
            into.append(back(part, member.grads, wanted and member.fossils))
        if not wanted:
            return None
        counts = [m.count for m in self.members]
        b, h, w, _, c = gd.shape
        whole = [gd.new_zeros(b, h, w, n, c) if t is None else t for t, n in zip(into, counts, strict=True)]
        return whole[0] if len(whole) == 1 else torch.cat(whole, 3)


def _through_autograd(member: Member) -> Callable[[Tensor, Params], tuple[Tensor, Back]]:
    """What a blueprint's by_hand would be, for one that has none."""

    def forward(x: Tensor, p: Params) -> tuple[Tensor, Back]:
        names = [name for name in p if name not in GATE_NAMES]
        leaves = [p[name] for name in names]
        looked = x.detach().requires_grad_(member.fossils)
        with torch.enable_grad():
            d = member.blueprint.forward(looked, p) - looked

        def back(g: Tensor, grads: Grads, needed: bool) -> Tensor | None:
            found = torch.autograd.grad(d, [*leaves, looked] if needed else leaves, g, allow_unused=True)
            grads.update({name: grad for name, grad in zip(names, found, strict=False) if grad is not None})
            return found[-1] if needed else None

        return d.detach(), back

    return forward
