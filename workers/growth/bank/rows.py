"""Some rows of a tensor, named by an index that names every row once at most.

Kernels that write by index sort it first on a GPU where results must be deterministic, to know who writes where, and in
older torch releases the processor waits for that. Here each row rather looks up what is written to it: a gather.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from workers.layers import device as _device


def writers(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each of `count` rows its place in `rows` [n], or 0: [count]; whether it has one there: [count, 1]."""
    here = rows == torch.arange(count, device=rows.device)[:, None]
    return here.to(torch.uint8).argmax(1), here.any(1, keepdim=True)


def put_rows(rows: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> None:
    """whole[rows] = part for each pair of matrices (whole, part)."""
    if _device.is_cpu(rows.device):
        for whole, part in pairs:
            whole[rows] = part
        return
    at, written = writers(rows, len(pairs[0][0]))
    for whole, part in pairs:
        whole.copy_(torch.where(written, part.index_select(0, at), whole))


@dataclass(frozen=True)
class Places:
    """m of the N rows of activations [B,H,W,N,C]."""

    rows: Tensor  # [m]
    at: Tensor  # [N] the place of each row in `rows`, or 0
    absent: Tensor | None  # [N,1] whether it has none; None: no row

    @staticmethod
    def of(rows: Tensor, count: int) -> Places:
        """`rows` among so many."""
        at, there = writers(rows, count)
        return Places(rows, at, None if len(rows) == count else ~there)

    def pick(self, x: Tensor) -> Tensor:
        """Their part of x, differentiable."""
        return cast(Tensor, _Moved.apply(x, self, False))  # type: ignore[no-untyped-call]

    def put(self, part: Tensor) -> Tensor:
        """Zeros with `part` in their places, differentiable."""
        return cast(Tensor, _Moved.apply(part, self, True))  # type: ignore[no-untyped-call]

    def moved(self, x: Tensor, back: bool) -> Tensor:
        """`pick`, or `put`: each is the gradient of the other."""
        found = x.index_select(3, self.at if back else self.rows)
        return found.masked_fill(self.absent, 0.0) if back and self.absent is not None else found


class _Moved(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, places: Places, back: bool) -> Tensor:
        context.places, context.back = places, back
        return places.moved(x, back)

    @staticmethod
    def backward(context: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return context.places.moved(grads[0], not context.back), None, None
