"""The loss scale of float16: one per run, not per environment.

It is the one thing that couples environments: an overflow in one of them halves what the small gradients of all are
multiplied by, and the smallest of those may underflow.
Small gradients are zero in float16; multiplied by a scale they are not (Micikevicius et al. 2018, arXiv:1710.03740,
section 3.2). The scale is a power of two, so it changes no digit of a gradient that neither overflows nor underflows.

- A host or a seed whose gradient is not finite keeps its parameters and its momentum for this step; all others step.
- The scale is halved by such a step, once however many there were, but only if the environment's own outputs are
  finite: a host whose outputs are not finite has diverged, whatever the scale, and its episode ends.
- Below 1 it never falls. At 1 a gradient is taken as it is, as without a scale: what is not finite there is a
  divergence, not an overflow.
- After CLEAN_STEPS steps without a halving it doubles, so that what one host did is not for ever.

Within an epoch every part of a run (the hosts of one device and one context) begins with the run's scale and halves
its own; the run goes on with the smallest. So the scale does not depend on which part was faster.
"""

from __future__ import annotations

import torch
from torch import Tensor

LARGEST = 2.0**16
CLEAN_STEPS = 1000


class LossScale:
    """What a run carries from one epoch and one episode to the next."""

    def __init__(self) -> None:
        self.value = LARGEST
        self.clean_steps = 0
        self._ended: list[tuple[float, int]] = []  # of the epoch in progress: scale at its end, steps

    def part(self, like: Tensor) -> PartScale:
        """The scale of one part of a run for one epoch, on the device and in the precision of `like`."""
        return PartScale(like.new_full((), self.value))

    def part_ended(self, scale: float, steps: int) -> None:
        """A part has trained for `steps` optimiser steps and ended with `scale`. May be called by several threads."""
        self._ended.append((scale, steps))

    def end_epoch(self) -> None:
        """All parts have ended: what the run goes on with."""
        if not self._ended:
            return
        smallest, steps = min(scale for scale, _ in self._ended), max(steps for _, steps in self._ended)
        self._ended.clear()
        if smallest < self.value:
            self.value, self.clean_steps = smallest, 0
            return
        self.clean_steps += steps
        if self.clean_steps >= CLEAN_STEPS:
            self.value, self.clean_steps = min(2.0 * self.value, LARGEST), 0

    def state(self) -> dict[str, float]:
        """For a checkpoint, between two epochs."""
        return {"value": self.value, "clean_steps": self.clean_steps}

    def resume(self, state: dict[str, float]) -> None:
        """Go on from `state`; ValueError when no run can have written it."""
        value, clean = float(state["value"]), int(state["clean_steps"])
        if not (1.0 <= value <= LARGEST and 0 <= clean < CLEAN_STEPS):
            raise ValueError(
                f"a loss scale of {value:g} after {clean} clean steps, beyond {LARGEST:g} or {CLEAN_STEPS - 1}"
            )
        self.value, self.clean_steps = value, clean


class PartScale:
    """The scale on its device. Nothing here waits for the device."""

    def __init__(self, scale: Tensor) -> None:
        self.scale = scale

    def usable(self, norm: Tensor) -> Tensor:
        """Whether rows with this gradient norm are updated: those that are finite, and at scale 1 all."""
        return torch.isfinite(norm) | (self.scale <= 1.0)

    def after_step(self, overflowed: Tensor) -> None:
        """Halve it where a row [n] overflowed whose environment's outputs are finite."""
        smaller = (0.5 * self.scale).clamp_min(1.0)
        self.scale = torch.where(overflowed.any(), smaller, self.scale)


def with_a_say(overflowed: list[Tensor | None], positions: list[Tensor], sound: Tensor) -> Tensor:
    """Rows that overflowed, of hosts [n] and then of each group of seeds, whose environment is `sound` [n]."""
    at = [torch.arange(len(sound), device=sound.device), *positions]
    return torch.cat([rows & sound[i] for rows, i in zip(overflowed, at, strict=True) if rows is not None])
