"""Many hosts with their seeds as one forward pass: what training differentiates and measuring looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from workers.datasets.task import HostSpec
from workers.growth.bank.host import BatchStatistics, head_forward, level_forward
from workers.growth.bank.slot import SlotSeeds
from workers.layers.blueprint import Params


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
