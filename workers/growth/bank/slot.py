"""Which seeds are in a slot, over which rows of the activations, and what they make of the features. Knows no table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.growth.bank.blend import Blend, gate_params, seed_delta, seed_input
from workers.growth.bank.rows import Places
from workers.growth.bank.stack import Stack
from workers.layers.blueprint import Blueprint, Params

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

    def positions(self) -> list[Tensor]:
        """Return, for each group, the rows of the activations [B,H,W,N,C] that its members hold, [n] each."""
        sizes = [len(group.members) for group in self.groups]
        rows = torch.arange(sum(sizes), device=self.blend.live.device) if self.places is None else self.places.rows
        return list(torch.split(rows, sizes))


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)
