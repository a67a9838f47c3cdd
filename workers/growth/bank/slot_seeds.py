"""Which seeds are in a slot, over which rows of the activations. Knows no seed table."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.growth.bank.blend import Blend
from workers.growth.bank.chains import Member
from workers.growth.bank.slot_step import SlotStep
from workers.growth.bank.stack import Stack
from workers.layers.blueprint import Blueprint, Params


@dataclass(frozen=True)
class SeedGroup:
    """The seeds of one blueprint in one slot."""

    blueprint: Blueprint
    stack: Stack
    members: Tensor  # [n] rows of the stack
    trained: Tensor | None  # [n] bool; None: all
    fossils: bool  # some are


@dataclass(frozen=True)
class SlotSeeds:
    """All seeds in one slot: each blueprint computes for its own rows, then they blend together."""

    groups: tuple[SeedGroup, ...]
    rows: Tensor | slice | None  # [n] positions on the activations' row axis, group after group; None: all, in order
    blend: Blend  # [n]

    def step(self, params: list[Params]) -> SlotStep:
        """Their arithmetic with these parameters of each group, [members, …]."""
        members = [
            Member(group.blueprint, p, len(group.members), group.fossils)
            for group, p in zip(self.groups, params, strict=True)
        ]
        return SlotStep(members, self.rows, self.blend)

    def positions(self) -> list[Tensor]:
        """Of every group's members on the activations' row axis."""
        sizes = [len(group.members) for group in self.groups]
        rows = self.rows
        if not isinstance(rows, Tensor):
            first = 0 if rows is None else int(rows.start)
            rows = torch.arange(first, first + sum(sizes), device=self.blend.live.device)
        return list(torch.split(rows, sizes))
