"""Parameters and optimiser of many networks of one architecture: one flat row each. Knows no network.

Rows are independent: gradient norm, clipping, weight decay and momentum are per row. A training epoch works on the
rows that are part of it (`borrow`) and writes them back (`give_back`), so a row that is not in the computation cannot
change, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.growth.bank.loss_scale import PartScale
from workers.growth.bank.rows import put_columns, put_rows
from workers.layers.blueprint import Grads, ParamSpec

_KERNEL = 4  # extents of a convolution's kernel [out, into, k, k]


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum (torch.optim.SGD's rule) on flat rows, clipped per row."""

    lr: float
    momentum: float
    weight_decay: float
    max_grad_norm: float


@dataclass(frozen=True)
class Used:
    """Parameters that something computes with, and where they are in a row: its first so many, or these [P]."""

    specs: tuple[ParamSpec, ...]
    columns: slice | Tensor

    @staticmethod
    def of(specs: tuple[ParamSpec, ...], idle: int, single_pixel: bool) -> Used:
        """All but the last `idle` scalars, whole parameters; around a single pixel only the centre of a wide kernel."""
        found: list[ParamSpec] = []
        columns = []
        start, end = 0, sum(spec.size for spec in specs) - idle
        for spec in specs:
            if start == end:
                break
            own = np.arange(start, start + spec.size)
            start += spec.size
            if single_pixel and len(spec.shape) == _KERNEL:
                own = own.reshape(spec.shape)[..., spec.shape[-2] // 2, spec.shape[-1] // 2].reshape(-1)
                spec = ParamSpec(spec.name, (*spec.shape[:-2], 1, 1), spec.bound, spec.center)
            found.append(spec)
            columns.append(own)
        whole = sum(spec.size for spec in found) == end
        return Used(tuple(found), slice(0, end) if whole else torch.from_numpy(np.concatenate(columns)))


@lru_cache(maxsize=256)
def _layout(specs: tuple[ParamSpec, ...]) -> tuple[list[int], list[tuple[str, tuple[int, ...]]]]:
    """Sizes in a row, and the name and shape [-1, …] of each parameter."""
    return [spec.size for spec in specs], [(spec.name, (-1, *spec.shape)) for spec in specs]


def _by_name(specs: tuple[ParamSpec, ...], flat: Tensor) -> dict[str, Tensor]:
    """Views [n, *shape] of rows [n, P] that hold `specs` one after the other."""
    sizes, found = _layout(specs)
    return {name: part.view(shape) for (name, shape), part in zip(found, flat.split_with_sizes(sizes, 1), strict=True)}


class Borrowed:
    """Some rows of a stack during one epoch: `leaves[name]` is [n, *shape], a view of `flat` [n, P] for autograd."""

    def __init__(self, used: Used, flat: Tensor, momentum: Tensor, trained: Tensor | None) -> None:
        self.used, self.flat, self.momentum = used, flat, momentum
        self._trained = trained  # [n, 1] bool; None: all
        self.leaves = {name: view.detach().requires_grad_() for name, view in _by_name(used.specs, flat).items()}

    @property
    def whole(self) -> bool:
        """Every row is trained."""
        return self._trained is None

    def gathered(self, grads: Mapping[str, Tensor]) -> Tensor:
        """Gradients of `leaves` by name as one matrix [n, P]; one that is not there is zero."""
        n = self.flat.shape[0]
        parts = [
            grads[name].reshape(n, -1) if name in grads else leaf.new_zeros(n, leaf[0].numel())
            for name, leaf in self.leaves.items()
        ]
        return torch.cat(parts, 1)

    @torch.no_grad()
    def step(self, grads: Mapping[str, Tensor], rule: SGD, scaled: PartScale | None = None) -> Tensor | None:
        """One update from the gradients of `leaves` by name; one that is not there counts as zero. In place.

        `scaled`: by what the gradients are multiplied. Returns the rows [n] whose gradient overflowed, which kept
        their values; None without a scale.
        """
        grad = self.gathered(grads)
        if scaled is not None:
            grad /= scaled.scale
        norm = torch.linalg.vector_norm(grad, dim=1, keepdim=True)
        grad *= torch.clamp(rule.max_grad_norm / (norm + 1e-6), max=1.0)
        if rule.weight_decay:
            grad += rule.weight_decay * self.flat
        usable = None if scaled is None else scaled.usable(norm)
        self._update(grad, rule, _both(self._trained, usable))
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
        self._whole = [index for index, loan in enumerate(loans) if loan.whole]
        self._flat = [loans[index].flat for index in self._whole]
        self._momentum = [loans[index].momentum for index in self._whole]

    @torch.no_grad()
    def step(self, grads: list[Grads], scaled: PartScale | None = None) -> list[Tensor | None]:
        """One update from every loan's gradients; what Borrowed.step returns, of every loan."""
        if scaled is not None:
            return [loan.step(own, self._rule, scaled) for loan, own in zip(self._loans, grads, strict=True)]
        for loan, own in zip(self._loans, grads, strict=True):
            if not loan.whole:
                loan.step(own, self._rule)
        if self._whole:
            self._update([self._loans[index].gathered(grads[index]) for index in self._whole])
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


def _cells(rows: Tensor, columns: slice | Tensor) -> tuple[Tensor, slice | Tensor]:
    """Index of a submatrix."""
    return (rows, columns) if isinstance(columns, slice) else (rows[:, None], columns)


@lru_cache(maxsize=64)  # a stack is made anew in every episode
def _initial(specs: tuple[ParamSpec, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
        self._known: dict[tuple[int, bool], Used] = {}
        self._bound, self._center = _initial(specs)

    def birth(self, row: int | slice, draws: NDArray[np.float64]) -> None:
        """Initialise row(s) from uniform draws in [0, 1), [P] or [rows, P], and zero their momentum."""
        values = self._center + self._bound * (2.0 * draws - 1.0)
        self.values[row] = torch.from_numpy(values).to(self.values)
        self.momentum[row] = 0.0

    def birth_tail(self, row: int, draws: NDArray[np.float64]) -> None:
        """Initialise only the last len(draws) parameters of a row; the rest keeps values and momentum."""
        tail = slice(self.width - len(draws), None)
        values = self._center[tail] + self._bound[tail] * (2.0 * draws - 1.0)
        self.values[row, tail] = torch.from_numpy(values).to(self.values)
        self.momentum[row, tail] = 0.0

    def clear(self, row: int) -> None:
        """Forget a row: a dropped module leaves nothing behind for the next one."""
        self.values[row] = 0.0
        self.momentum[row] = 0.0

    def borrow(self, rows: Tensor, trained: Tensor | None, idle: int = 0, single_pixel: bool = False) -> Borrowed:
        """Copies of `rows` [n] to train on; `trained` [n] bool selects those whose update counts (None: all).

        Left out is what nothing computes with: the last `idle` parameters, whole ones by `specs`, and with
        `single_pixel` all of a wide kernel but its centre.
        """
        column = None if trained is None else trained[:, None]
        used = self._used(idle, single_pixel)
        at = _cells(rows, used.columns)
        return Borrowed(used, self.values[at], self.momentum[at], column)

    def _used(self, idle: int, single_pixel: bool) -> Used:
        key = idle, single_pixel
        if key not in self._known:
            used = Used.of(self.specs, idle, single_pixel)
            if isinstance(used.columns, Tensor):
                used = Used(used.specs, used.columns.to(self.values.device, non_blocking=True))
            self._known[key] = used
        return self._known[key]

    def give_back(self, rows: Tensor, borrowed: Borrowed) -> None:
        """Write borrowed rows back."""
        columns = borrowed.used.columns
        pairs = [(self.values, borrowed.flat), (self.momentum, borrowed.momentum)]
        if isinstance(columns, slice):
            pairs = [(whole[:, columns], lent) for whole, lent in pairs]
        else:
            pairs = [(whole, put_columns(whole.index_select(0, rows), columns, lent)) for whole, lent in pairs]
        put_rows(rows, pairs)

    def read(self, rows: Tensor) -> dict[str, Tensor]:
        """Parameters of `rows` [n] (repeats allowed) by name, [n, *shape], without autograd."""
        return _by_name(self.specs, self.values[rows])
