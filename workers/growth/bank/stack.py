"""Parameters and optimiser of many networks of one architecture: one flat row each; and the loss scale of float16.

Rows are independent: gradient norm, clipping, weight decay and momentum are per row. A training epoch works on the
rows that are part of it (`borrow`) and writes them back (`give_back`), so a row that is not in the computation cannot
change, to the bit.

Kernels that write by index sort it first on a GPU where results must be deterministic, to know who writes where, and in
older torch releases the processor waits for that. Here each row rather looks up what is written to it: a gather.

The loss scale is one per run, not per environment: the one thing that couples environments. An overflow in one of them
halves what the small gradients of all are multiplied by, and the smallest of those may underflow.
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

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from workers.arrays import Floats
from workers.layers import device as _device
from workers.layers.blueprint import ParamSpec

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


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum (torch.optim.SGD's rule) on flat rows, clipped per row."""

    lr: float
    momentum: float
    weight_decay: float
    max_grad_norm: float


def by_name(specs: tuple[ParamSpec, ...], flat: Tensor) -> dict[str, Tensor]:
    """Views [n, *shape] of rows [n, P] that hold `specs`, or the first of them, one after the other."""
    sizes, found = _layout(specs, flat.shape[1])
    return {name: part.view(shape) for (name, shape), part in zip(found, flat.split_with_sizes(sizes, 1), strict=True)}


@lru_cache(maxsize=256)
def _layout(specs: tuple[ParamSpec, ...], width: int) -> tuple[list[int], list[tuple[str, tuple[int, ...]]]]:
    """Sizes in a row of so many scalars, and the name and shape [-1, …] of each parameter."""
    sizes: list[int] = []
    found: list[tuple[str, tuple[int, ...]]] = []
    for spec in specs:
        if sum(sizes) == width:
            break
        sizes.append(spec.size)
        found.append((spec.name, (-1, *spec.shape)))
    return sizes, found


class Borrowed:
    """Some rows of a stack during one epoch: `flat` [n, P], whose gradient is to be found."""

    def __init__(self, specs: tuple[ParamSpec, ...], flat: Tensor, momentum: Tensor, trained: Tensor | None) -> None:
        self._specs, self.flat, self.momentum = specs, flat.requires_grad_(), momentum
        self.trained = trained  # [n, 1] bool; None: all

    def params(self) -> dict[str, Tensor]:
        """By name [n, *shape], as they are now, for autograd."""
        return by_name(self._specs, self.flat)

    @torch.no_grad()
    def step(self, grad: Tensor, rule: SGD, scaled: PartScale | None = None) -> Tensor | None:
        """One update from the gradient [n, P], which is overwritten.

        `scaled`: by what it is multiplied. Returns the rows [n] whose gradient overflowed, which kept their values;
        None without a scale.
        """
        if scaled is not None:
            grad /= scaled.scale
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        grad *= torch.clamp(rule.max_grad_norm / (norm + 1e-6), max=1.0)
        if rule.weight_decay:
            grad += rule.weight_decay * self.flat
        usable = None if scaled is None else scaled.usable(norm)
        self._update(grad, rule, _both(self.trained, usable))
        return None if usable is None else ~usable[:, 0]

    def _update(self, grad: Tensor, rule: SGD, taken: Tensor | None) -> None:
        if taken is None:
            self.momentum.mul_(rule.momentum).add_(grad)
            self.flat.sub_(self.momentum, alpha=rule.lr)
            return
        velocity = rule.momentum * self.momentum + grad
        # Selected, never multiplied by zero: a non-finite gradient of a row that stays must not touch it.
        self.momentum.copy_(torch.where(taken, velocity, self.momentum))
        self.flat.copy_(torch.where(taken, self.flat - rule.lr * velocity, self.flat))


class Optimiser:
    """Loans that are trained by one rule: Borrowed.step of all of them in few calls."""

    def __init__(self, loans: list[Borrowed], rule: SGD) -> None:
        self._loans, self._rule = loans, rule
        self._whole = [index for index, loan in enumerate(loans) if loan.trained is None]
        self._flat = [loans[index].flat for index in self._whole]
        self._momentum = [loans[index].momentum for index in self._whole]

    @torch.no_grad()
    def step(self, grads: list[Tensor], scaled: PartScale | None = None) -> list[Tensor | None]:
        """One update from every loan's gradient; what Borrowed.step returns, of every loan."""
        if scaled is not None:
            return [loan.step(own, self._rule, scaled) for loan, own in zip(self._loans, grads, strict=True)]
        for loan, own in zip(self._loans, grads, strict=True):
            if loan.trained is not None:
                loan.step(own, self._rule)
        if self._whole:
            self._update([grads[index] for index in self._whole])
        return [None] * len(self._loans)

    def _update(self, found: list[Tensor]) -> None:
        rule = self._rule
        norms = [torch.linalg.vector_norm(grad, dim=1, keepdim=True) for grad in found]
        factors = torch.clamp(rule.max_grad_norm / (torch.cat(norms) + 1e-6), max=1.0)
        torch._foreach_mul_(found, list(torch.split(factors, [len(grad) for grad in found])))
        velocities = self._momentum if rule.momentum else []  # torch refuses them where there is no momentum
        torch._fused_sgd_(
            self._flat, found, velocities, weight_decay=rule.weight_decay, momentum=rule.momentum, lr=rule.lr,
            dampening=0.0, nesterov=False, maximize=False, is_first_step=False,
        )  # fmt: skip


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Rows that both masks select; a mask that is not there selects all."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


@lru_cache(maxsize=64)  # a stack is made anew in every episode
def _initial(specs: tuple[ParamSpec, ...]) -> tuple[Floats, Floats]:
    """Bound and centre of every scalar's initial value, [P] each; shared, to be read only."""
    sizes = [spec.size for spec in specs]
    return (
        np.repeat(np.array([spec.bound for spec in specs], dtype=np.float64), sizes),
        np.repeat(np.array([spec.center for spec in specs], dtype=np.float64), sizes),
    )


class Stack:
    """Flat parameters [rows, P] and momentum [rows, P] of one architecture."""

    def __init__(self, specs: tuple[ParamSpec, ...], rows: int, device: torch.device, dtype: torch.dtype) -> None:
        self.specs = specs
        self.width = sum(spec.size for spec in specs)
        self.values = torch.zeros(rows, self.width, device=device, dtype=dtype)
        self.momentum = torch.zeros_like(self.values)
        self.bound, self.center = _initial(specs)

    def clear(self, row: int) -> None:
        """Forget a row: a dropped module leaves nothing behind for the next one."""
        self.values[row] = 0.0
        self.momentum[row] = 0.0

    def borrow(self, rows: Tensor, trained: Tensor | None, idle: int = 0) -> Borrowed:
        """Copies of `rows` [n] to train on, without the last `idle` parameters, which nothing computes with.

        `trained` [n] bool selects those whose update counts; None: all.
        """
        used = slice(0, self.width - idle)
        column = None if trained is None else trained[:, None]
        return Borrowed(self.specs, self.values[rows, used], self.momentum[rows, used], column)

    def give_back(self, rows: Tensor, borrowed: Borrowed) -> None:
        """Write borrowed rows back."""
        pairs = [(self.values, borrowed.flat.detach()), (self.momentum, borrowed.momentum)]
        put_rows(rows, [(whole[:, : lent.shape[1]], lent) for whole, lent in pairs])

    def read(self, rows: Tensor) -> dict[str, Tensor]:
        """Parameters of `rows` [n] (repeats allowed) by name, [n, *shape], without autograd."""
        return by_name(self.specs, self.values[rows])


def births(newborn: list[tuple[Stack, int | slice, Floats]]) -> None:
    """Initialise row(s) of stacks on one device, with one upload for all, and zero their momentum.

    Each from uniform draws in [0, 1), [P] or [rows, P]. Of fewer draws than P, only as many parameters, the last ones;
    the rest keeps values and momentum.
    """
    lasts = [slice(stack.width - draws.shape[-1], None) for stack, _, draws in newborn]
    found = [stack.center[last] + stack.bound[last] * (2.0 * draws - 1.0)
             for (stack, _, draws), last in zip(newborn, lasts, strict=True)]  # fmt: skip
    like, flat = newborn[0][0].values, torch.from_numpy(np.concatenate(found, axis=None))
    # Cast before, so that half as much is copied; nobody waits for the copy.
    uploaded = flat.to(like.dtype).to(like.device, non_blocking=True).split_with_sizes([one.size for one in found])
    for (stack, row, draws), last, values in zip(newborn, lasts, uploaded, strict=True):
        stack.values[row, last] = values.view(draws.shape)
        stack.momentum[row, last] = 0.0
