"""Parameters and optimiser state of many networks of one architecture, with one flat row per network.

Rows are independent: gradient norm, clipping, weight decay and momentum are per row. A training epoch works on copies
of the rows that take part (`borrow`) and writes them back (`give_back`), so no bit of another row can change.

On a GPU, a deterministic write by index starts with a sort of the index, and in older torch releases the CPU waits for
that sort. Writes are therefore done by a gather, in which each row looks up its new value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from workers.arrays import Floats
from workers.kinds.growth.layers import device as _device
from workers.kinds.growth.layers.blueprint import ParamSpec


def writers(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """For each of `count` rows, return its index in `rows` [n], or 0 if it is not there, and whether it is there."""
    matches = rows == torch.arange(count, device=rows.device)[:, None]
    return matches.to(torch.uint8).argmax(1), matches.any(1, keepdim=True)  # [count], [count, 1]


def put_rows(rows: Tensor, pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Assign whole[rows] = part for each pair of matrices (whole, part)."""
    if _device.is_cpu(rows.device):
        for matrix, part in pairs:
            matrix[rows] = part
        return
    source_rows, written_mask = writers(rows, len(pairs[0][0]))
    for matrix, part in pairs:
        matrix.copy_(torch.where(written_mask, part.index_select(0, source_rows), matrix))


@dataclass(frozen=True)
class Places:
    """The positions of m of the N rows of activations [B,H,W,N,C]."""

    rows: Tensor  # [m]
    at: Tensor  # [N] index of each row in `rows`, or 0
    absent: Tensor | None  # [N,1] rows that are not in `rows`; None: there are none

    @staticmethod
    def of(rows: Tensor, count: int) -> Places:
        """Return the places of `rows` among `count` rows."""
        writer_rows, written_mask = writers(rows, count)
        absent_mask = None if len(rows) == count else ~written_mask
        return Places(rows, writer_rows, absent_mask)

    def pick(self, x: Tensor) -> Tensor:
        """Return these rows of x, differentiable."""
        return cast(Tensor, _Moved.apply(x, self, False))  # type: ignore[no-untyped-call]

    def put(self, part: Tensor) -> Tensor:
        """Return a tensor of zeros with `part` at these rows; gradients flow to `part`."""
        return cast(Tensor, _Moved.apply(part, self, True))  # type: ignore[no-untyped-call]

    def moved(self, x: Tensor, back: bool) -> Tensor:
        """Return the result of `pick`, or of `put` if `back`; each method is the gradient of the other."""
        if not back:
            return x.index_select(3, self.rows)
        spread = x.index_select(3, self.at)
        if self.absent is None:
            return spread
        return spread.masked_fill(self.absent, 0.0)


class _Moved(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, x: Tensor, row_places: Places, back: bool) -> Tensor:
        context.places = row_places
        context.back = back
        return row_places.moved(x, back)

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


def by_name(specs: tuple[ParamSpec, ...], flat_rows: Tensor) -> dict[str, Tensor]:
    """Return parameters in flat rows [n, P] as named views [n, *shape]; a row may hold only the first of `specs`."""
    sizes, shapes = _layout(specs, flat_rows.shape[1])
    parts = flat_rows.split_with_sizes(sizes, 1)
    return {name: part.view(shape) for (name, shape), part in zip(shapes, parts, strict=True)}


@lru_cache(maxsize=256)
def _layout(specs: tuple[ParamSpec, ...], width: int) -> tuple[list[int], list[tuple[str, tuple[int, ...]]]]:
    """Return the sizes of the parameters in a row of `width` scalars, and each parameter's name and shape [-1, …]."""
    sizes: list[int] = []
    shapes: list[tuple[str, tuple[int, ...]]] = []
    for spec in specs:
        if sum(sizes) == width:
            break
        sizes.append(spec.size)
        shapes.append((spec.name, (-1, *spec.shape)))
    return sizes, shapes


class Borrowed:
    """Rows of a stack borrowed for one epoch; `flat` [n, P] requires a gradient."""

    def __init__(
        self, specs: tuple[ParamSpec, ...], flat_rows: Tensor, momentum: Tensor, trained_mask: Tensor | None
    ) -> None:
        self._specs = specs
        self.flat = flat_rows.requires_grad_()
        self.momentum = momentum
        self.trained_mask = trained_mask  # [n, 1] bool; None: all

    def params(self) -> dict[str, Tensor]:
        """Return the current parameters by name, [n, *shape], for autograd."""
        return by_name(self._specs, self.flat)

    @torch.no_grad()
    def step(self, grad: Tensor, rule: SGD, taken_mask: Tensor | None = None) -> None:
        """Update from the gradient [n, P], which is overwritten. `taken_mask` [n, 1] selects rows; None: all."""
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        grad *= torch.clamp(rule.max_grad_norm / (norm + 1e-6), max=1.0)
        if rule.weight_decay:
            grad += rule.weight_decay * self.flat
        updated_mask = _both(self.trained_mask, taken_mask)
        if updated_mask is None:
            self.momentum.mul_(rule.momentum).add_(grad)
            self.flat.sub_(self.momentum, alpha=rule.lr)
            return
        velocity = rule.momentum * self.momentum + grad
        # `where`, not a product with zero: a skipped row's non-finite gradient must not reach it.
        self.momentum.copy_(torch.where(updated_mask, velocity, self.momentum))
        self.flat.copy_(torch.where(updated_mask, self.flat - rule.lr * velocity, self.flat))


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """Return the rows that both masks select; None selects all."""
    if a is None:
        return b
    if b is None:
        return a
    return a & b


class Optimiser:
    """Trains several borrowed stacks by one rule, with the same effect as Borrowed.step on each, but in few calls."""

    def __init__(self, loans: list[Borrowed], rule: SGD) -> None:
        self._loans = loans
        self._rule = rule
        self._whole = [index for index, loan in enumerate(loans) if loan.trained_mask is None]
        self._flat = [loans[index].flat for index in self._whole]
        self._momentum = [loans[index].momentum for index in self._whole]

    @torch.no_grad()
    def step(self, grads: Sequence[Tensor], taken_masks: Sequence[Tensor] | None = None) -> None:
        """Update every borrowed stack from its gradient. `taken_masks` selects rows of each stack; None: all."""
        if taken_masks is not None:
            for loan, own_grad, rows in zip(self._loans, grads, taken_masks, strict=True):
                loan.step(own_grad, self._rule, rows)
            return
        for loan, own_grad in zip(self._loans, grads, strict=True):
            if loan.trained_mask is not None:
                loan.step(own_grad, self._rule)
        if self._whole:
            self._update([grads[index] for index in self._whole])

    def _update(self, grads: list[Tensor]) -> None:
        rule = self._rule
        norms = [torch.linalg.vector_norm(grad, dim=1, keepdim=True) for grad in grads]
        factors = torch.clamp(rule.max_grad_norm / (torch.cat(norms) + 1e-6), max=1.0)
        torch._foreach_mul_(grads, list(torch.split(factors, [len(grad) for grad in grads])))
        velocities = self._momentum if rule.momentum else []  # torch refuses them without momentum
        torch._fused_sgd_(
            self._flat,
            grads,
            velocities,
            weight_decay=rule.weight_decay,
            momentum=rule.momentum,
            lr=rule.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )


@lru_cache(maxsize=64)  # every episode makes new stacks
def _initial(specs: tuple[ParamSpec, ...]) -> tuple[Floats, Floats]:
    """Return the bound and the centre of every scalar's initial value, [P] each. Do not change these shared arrays."""
    sizes = [spec.size for spec in specs]
    bounds = np.array([spec.bound for spec in specs], dtype=np.float64)
    centers = np.array([spec.center for spec in specs], dtype=np.float64)
    return np.repeat(bounds, sizes), np.repeat(centers, sizes)


class Stack:
    """Flat parameters [rows, P] and momentum [rows, P] of one architecture."""

    def __init__(self, specs: tuple[ParamSpec, ...], rows: int, device: torch.device, dtype: torch.dtype) -> None:
        self.specs = specs
        self.width = sum(spec.size for spec in specs)
        self.values = torch.zeros(rows, self.width, device=device, dtype=dtype)
        self.momentum = torch.zeros_like(self.values)
        self.bound, self.center = _initial(specs)

    def clear(self, row: int) -> None:
        """Zero a row, so that a dropped module leaves nothing for the next one."""
        self.values[row] = 0.0
        self.momentum[row] = 0.0

    def borrow(self, rows: Tensor, trained_mask: Tensor | None, idle: int = 0) -> Borrowed:
        """Return copies of `rows` [n] to train on, without the last `idle` parameters, which nothing uses.

        `trained_mask` [n] bool selects the rows to update; None: all.
        """
        used_columns = slice(0, self.width - idle)
        column = None if trained_mask is None else trained_mask[:, None]
        return Borrowed(self.specs, self.values[rows, used_columns], self.momentum[rows, used_columns], column)

    def give_back(self, rows: Tensor, loan: Borrowed) -> None:
        """Write borrowed rows back."""
        pairs = [(self.values, loan.flat.detach()), (self.momentum, loan.momentum)]
        put_rows(rows, [(matrix[:, : lent_rows.shape[1]], lent_rows) for matrix, lent_rows in pairs])

    def read(self, rows: Tensor) -> dict[str, Tensor]:
        """Return the parameters of `rows` [n] (repeats allowed) by name, [n, *shape], without autograd."""
        return by_name(self.specs, self.values[rows])


def births(newborn_seeds: list[tuple[Stack, int | slice, Floats]]) -> None:
    """Initialise row(s) of stacks on one device, with one upload for all, and zero their momentum.

    Each row is computed from uniform draws in [0, 1), [P] or [rows, P]. With fewer draws than P, only the last
    parameters are initialised, one per draw; the others keep their values and momentum.
    """
    gate_columns = [slice(stack.width - draws.shape[-1], None) for stack, _, draws in newborn_seeds]
    initial_values = [
        stack.center[last_columns] + stack.bound[last_columns] * (2.0 * draws - 1.0)
        for (stack, _, draws), last_columns in zip(newborn_seeds, gate_columns, strict=True)
    ]
    template = newborn_seeds[0][0].values
    flat_values = torch.from_numpy(np.concatenate(initial_values, axis=None))
    # Cast before the copy, so that half as much is copied; the copy is asynchronous.
    uploaded_values = flat_values.to(template.dtype).to(template.device, non_blocking=True)
    parts = uploaded_values.split_with_sizes([values.size for values in initial_values])
    for (stack, row, draws), last_columns, values in zip(newborn_seeds, gate_columns, parts, strict=True):
        stack.values[row, last_columns] = values.view(draws.shape)
        stack.momentum[row, last_columns] = 0.0
