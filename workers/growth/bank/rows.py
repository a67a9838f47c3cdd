"""Writing to some rows of a tensor, named by an index.

A CPU writes by index. On a GPU, kernels that write by index sort it first where results must be deterministic, to know
who writes where, and in older torch releases the processor waits for that. Here an index names every row once, so each
row can rather look up what is written to it: a gather needs neither.
"""

from __future__ import annotations

import torch
from torch import Tensor

from workers.layers import device as _device


def writers(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each of `count` rows its place in `rows` [n], or 0: [count]; whether it has one there: [count, 1]."""
    here = rows == torch.arange(count, device=rows.device)[:, None]
    return here.to(torch.uint8).argmax(1), here.any(1, keepdim=True)


def put_rows(rows: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> None:
    """whole[rows] = part for each pair of matrices (whole, part), with every row named once at most."""
    if _device.is_cpu(rows.device):
        for whole, part in pairs:
            whole[rows] = part
        return
    at, written = writers(rows, len(pairs[0][0]))
    for whole, part in pairs:
        whole.copy_(torch.where(written, part.index_select(0, at), whole))


def put_columns(whole: Tensor, columns: Tensor, part: Tensor) -> Tensor:
    """A matrix `whole`, which is overwritten, with `part` in these columns, every one named once at most."""
    if _device.is_cpu(whole.device):
        whole[:, columns] = part
        return whole
    at, written = writers(columns, whole.shape[1])
    return torch.where(written.T, part.index_select(1, at), whole)
