"""What a slot's seeds add to the host's features, as one step of autograd with a backward of its own.

It computes what blend.seed_delta does; that one says what is meant, this one passes over the features as seldom as it
can, and works out each blend for its own rows only. Features may be of less precision than the blend's coefficients:
then so is what is kept for the backward pass, and all sums are in that of the coefficients. tests/tensor/test_fused.py
holds it against seed_delta.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from workers.growth.blend import TINY, Blend


def _per_network(x: Tensor) -> Tensor:
    """Sum over pixels, then channels: [B,H,W,n,C] -> [B,n]. Pixels first: that sum runs along the memory."""
    return x.sum((1, 2)).sum(2)


def _over(values: Tensor, like: Tensor) -> Tensor:
    """[B,n] -> [B,1,1,n,C], written out: one long inner loop instead of a short one per network."""
    b, n = values.shape
    return values[:, :, None].expand(b, n, like.shape[4]).contiguous()[:, None, None]


class _Delta(torch.autograd.Function):
    """h, s [B,H,W,n,C] and gate openings [B,n] or None -> delta; see blend.seed_delta for the formulas."""

    @staticmethod
    def forward(context: Any, h: Tensor, s: Tensor, opening: Tensor | None, blend: Blend) -> Tensor:
        kept, precise = h.dtype, blend.live.dtype
        h = h.to(precise)
        d = s.to(precise) - h
        size = h.shape[1] * h.shape[2] * h.shape[4]
        squares = _per_network(d.square())
        ratio = (_per_network(h.square()) / size).sqrt() * torch.rsqrt((squares / size).clamp_min(TINY))
        shrink = ratio.clamp(max=1.0)
        outer = blend.live[:, 0].expand(shrink.shape)  # factor of d̂ in the gradient
        if opening is not None and blend.gated is not None:
            outer = torch.where(blend.gated[:, 0], outer * opening, outer)
        shown = outer if blend.stopped is None else outer * (1.0 - blend.stopped[:, 0])  # and in the value
        delta = d * _over(shown * shrink, d)
        tanh = None
        rows = blend.multiply_rows
        if rows is not None:
            tanh = torch.tanh(d.index_select(3, rows))
            delta.index_copy_(3, rows, h.index_select(3, rows) * tanh * blend.live.index_select(0, rows))
        flows = (ratio <= 1.0) & (squares / size >= TINY)
        context.save_for_backward(h.to(kept), d.to(kept), squares, shrink, outer, flows, tanh)
        context.blend, context.gate_used = blend, opening is not None
        return delta.to(kept)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor | None, None]:
        h, d, squares, shrink, outer, flows, tanh = context.saved_tensors
        blend: Blend = context.blend
        kept, precise = h.dtype, blend.live.dtype
        h, d, g = h.to(precise), d.to(precise), grads[0].to(precise)
        along = _per_network(g * d)
        back = torch.where(flows, outer * along * shrink / squares, 0.0)
        ds = (g * _over(outer * shrink, d)).sub_(d * _over(back, d))
        dopening = along * shrink * blend.live[:, 0] if context.gate_used else None
        if dopening is not None and blend.gated is not None:
            dopening = torch.where(blend.gated[:, 0], dopening, 0.0)
        dh = None
        rows = blend.multiply_rows
        if rows is not None:
            mine = g.index_select(3, rows) * blend.live.index_select(0, rows)
            dh = torch.zeros_like(h).index_copy_(3, rows, mine * tanh)
            ds.index_copy_(3, rows, mine * h.index_select(3, rows) * (1.0 - tanh.square()))
        if blend.fossil is not None:  # a fossil looks at the features themselves
            through = torch.where(blend.fossil, ds, 0.0)
            dh = through.neg_() if dh is None else dh.sub_(through)
        return None if dh is None else dh.to(kept), ds.to(kept), dopening, None


def fused_delta(h: Tensor, s: Tensor, opening: Tensor | None, blend: Blend) -> Tensor:
    """What seeds with outputs s = s(x) add to their rows' features h [B,H,W,n,C].

    `opening` [B,n]: the gates' of all rows, None when no row has one. The gradient for h is that of the formulas alone;
    what flows through s and the gate into a fossil's features is autograd's.
    """
    return cast(Tensor, _Delta.apply(h, s, opening, blend))  # type: ignore[no-untyped-call]
