"""Loss scales for training in float16: one per environment, by the rule of torch.amp.GradScaler.

Small gradients underflow to 0 in float16. Gradients of a loss that is multiplied by a scale do not (Micikevicius et al.
2018, arXiv:1710.03740, section 3.2). Scales are powers of two, so multiplying and dividing by them changes no digit.

A GradScaler has one scale for a whole backward pass, but here one pass differentiates the losses of all environments.
So an environment's overflow would skip the steps of all, and lower the scale of all. This module applies the same rule
to a column of scales instead, so that environments stay independent:

- If a gradient of an environment's host or of its trained seeds is not finite, all of them skip this step: parameters
  and momentum stay, and the environment's scale is halved.
- After GROWTH_INTERVAL steps in a row without that, the scale is doubled.

One thing differs: no scale falls below 1. A gradient that is not finite at scale 1 is a divergence, not an overflow.
The step is taken, as in float32; the next loss is not finite, and the host's episode ends.

Every episode starts with fresh hosts and so with fresh scales. An episode stays a function of its rng paths and its
policy, and a checkpoint, which is written between episodes, needs no scale to resume bit-identically.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.kinds.growth.bank.stack import Borrowed, Places, put_rows

# The defaults of torch.amp.GradScaler.
INITIAL_SCALE = 2.0**16
GROWTH_FACTOR = 2.0
BACKOFF_FACTOR = 0.5
GROWTH_INTERVAL = 2000  # steps
LEAST_SCALE = 1.0


class LossScales:
    """The loss scale and the number of finite steps since it last changed, [n, 1] each, of n environments."""

    def __init__(self, scale: Tensor, finite_steps: Tensor) -> None:
        self.scale = scale
        self.finite_steps = finite_steps

    @staticmethod
    def fresh(count: int, template: Tensor) -> LossScales:
        """Return the scales of `count` environments with fresh hosts, on the device and in the dtype of `template`."""
        return LossScales(
            torch.full((count, 1), INITIAL_SCALE, device=template.device, dtype=template.dtype),
            torch.zeros(count, 1, device=template.device, dtype=torch.int32),
        )

    def borrow(self, rows: Tensor) -> LossScales:
        """Return copies of `rows` [n]."""
        return LossScales(self.scale[rows], self.finite_steps[rows])

    def give_back(self, rows: Tensor, rows_of_scales: LossScales) -> None:
        """Write borrowed rows back."""
        put_rows(rows, [(self.scale, rows_of_scales.scale), (self.finite_steps, rows_of_scales.finite_steps)])

    def update(self, overflow_mask: Tensor) -> None:
        """Change every scale after a step, by whether its environment overflowed [n, 1]. Does not synchronise."""
        finite_steps = torch.where(overflow_mask, 0, self.finite_steps + 1)
        due = finite_steps == GROWTH_INTERVAL
        larger_scale = self.scale * GROWTH_FACTOR
        next_scale = torch.where(due & larger_scale.isfinite(), larger_scale, self.scale)
        lower_scale = (self.scale * BACKOFF_FACTOR).clamp_min(LEAST_SCALE)
        self.scale = torch.where(overflow_mask, lower_scale, next_scale)
        self.finite_steps = torch.where(due, 0, finite_steps)


class Scaling:
    """The scaling of one epoch's losses and gradients; all n environments of the epoch have a scale in `scales`."""

    def __init__(self, scales: LossScales, loans: Sequence[Borrowed], env_places: Sequence[Places]) -> None:
        """Scale the gradients of `loans`; `env_places`: for each of them, the environment of each row."""
        self.scales = scales
        self._loans = loans
        self._places = env_places

    @torch.no_grad()
    def unscale(self, grads: Sequence[Tensor]) -> list[Tensor]:
        """Divide the gradient [rows, P] of each loan by its environments' scales, in place, and update the scales.

        Return, for each loan, the rows [rows, 1] whose environment takes this step. Does not synchronise.
        """
        inverse = self.scales.scale.reciprocal()
        overflow_mask = torch.zeros_like(inverse, dtype=torch.bool)
        for loan, row_places, grad in zip(self._loans, self._places, grads, strict=True):
            overflow_mask |= _spread_over_environments(_overflowed_rows(loan, grad), row_places)
            grad *= inverse.index_select(0, row_places.rows)
        overflow_mask &= self.scales.scale > LEAST_SCALE
        self.scales.update(overflow_mask)
        return [~overflow_mask.index_select(0, row_places.rows) for row_places in self._places]


def _overflowed_rows(loan: Borrowed, grad: Tensor) -> Tensor:
    """Return the trained rows [rows, 1] with a gradient that is not finite."""
    overflow_rows = ~grad.isfinite().all(1, keepdim=True)
    return overflow_rows if loan.trained_mask is None else overflow_rows & loan.trained_mask


def _spread_over_environments(rows: Tensor, row_places: Places) -> Tensor:
    """Return a property of a loan's `rows` [rows, 1] as a property of environments [n, 1]; False for the others."""
    env_rows = rows.index_select(0, row_places.at)
    return env_rows if row_places.absent is None else env_rows & ~row_places.absent
