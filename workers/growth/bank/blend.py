"""How seeds join the host's features: the delta that a slot adds, for all rows that hold a seed in it.

With h the features, d = s(stop h) − stop h and d̂ = d·min(1, rms(h)/rms(d)):
TRAINING y = h + d̂ − stop(d̂); ADD y = h + α·d̂; MULTIPLY y = h·(1 + α·tanh(d)); GATE y = h + α·g(stop h)·d̂.
So ∂y/∂h = I for ADD at any α until the seed is fossilised: host and slots upstream keep learning. That is a biased host
gradient, on purpose; a fossil is part of the host: no stop, same forward.
The bound is there because nothing else stops an incubating seed's delta from growing: its output is not in the loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from workers.arrays import Bools, Floats, Ints
from workers.layers.blueprint import Params, ParamSpec, fan_in_bound, linear, pooled
from workers.vocabulary import Algorithm, Stage

TINY = 1e-12  # of a mean square: keeps the gradient of an exact identity finite


@dataclass(frozen=True)
class Blend:
    """How each of n rows blends; [n, 1]. A mask that no row needs is None."""

    live: Tensor  # factor of d̂: 1 while incubating, else alpha
    stopped: Tensor | None  # factor of stop(d̂): 1 while incubating, else 0
    multiply: Tensor | None
    multiplied: Tensor | None  # factor of h·tanh(d): alpha where `multiply` is set, else 0
    ungated: Tensor | None  # None: all
    fossil: Tensor | None

    @staticmethod
    def of(stage: Ints, alpha: Floats, algorithm: Ints, like: Tensor) -> Blend:
        """Coefficients of n seeds, on the device and in the precision of `like`."""
        incubating = stage == Stage.TRAINING
        gated = ~incubating & (algorithm == Algorithm.GATE)
        multiply = ~incubating & (algorithm == Algorithm.MULTIPLY)

        def column(values: NDArray[np.generic]) -> Tensor:
            return torch.from_numpy(values[:, None]).to(like.device, non_blocking=True)  # nobody waits for the device

        def mask(selected: Bools) -> Tensor | None:
            return column(selected) if selected.any() else None

        return Blend(
            live=column(np.where(incubating, 1.0, alpha)).to(like.dtype),
            stopped=column(incubating.astype(np.float64)).to(like.dtype) if incubating.any() else None,
            multiply=mask(multiply),
            multiplied=column(multiply * alpha).to(like.dtype) if multiply.any() else None,
            ungated=column(~gated) if gated.any() else None,
            fossil=mask(stage == Stage.FOSSILIZED),
        )


@lru_cache(maxsize=64)  # asked for at every birth and for every slot in every epoch
def gate_params(channels: int) -> tuple[ParamSpec, ...]:
    """The gate network: Linear(C → max(8, C//4)), SiLU, Linear(→ 1), sigmoid on pooled features."""
    hidden = max(8, channels // 4)
    return (
        ParamSpec("gate.hidden.weight", (channels, hidden), bound=fan_in_bound(channels)),
        ParamSpec("gate.hidden.bias", (hidden,), bound=fan_in_bound(channels)),
        ParamSpec("gate.out.weight", (hidden, 1), bound=fan_in_bound(hidden)),
        ParamSpec("gate.out.bias", (1,), bound=fan_in_bound(hidden)),
    )


def gate(x: Tensor, p: Params) -> Tensor:
    """One openness in (0, 1) per sample: x [B,H,W,n,C] -> [B,1,1,n,1]."""
    hidden = F.silu(linear(pooled(x), p["gate.hidden.weight"], p["gate.hidden.bias"]))  # [n,B,hidden]
    opening = torch.sigmoid(linear(hidden, p["gate.out.weight"], p["gate.out.bias"]))  # [n,B,1]
    return opening.transpose(0, 1)[:, None, None]


def bound(delta: Tensor, h: Tensor) -> Tensor:
    """d̂ ÷ delta [B,1,1,n,1]: it shrinks delta to the rms of h, per sample and network over C, H, W.

    Differentiated through delta only.
    """
    rms_h = _mean_square(h.detach()).sqrt()
    inverse_rms = torch.rsqrt(_mean_square(delta).clamp_min(TINY))
    return (rms_h * inverse_rms).clamp(max=1.0)


def _mean_square(x: Tensor) -> Tensor:
    """Of every sample and network: [B,H,W,n,C] -> [B,1,1,n,1]."""
    return x.square().mean((1, 2, 4), keepdim=True)


def seed_input(h: Tensor, blend: Blend) -> Tensor:
    """What the seeds of rows h [B,H,W,n,C] look at: the features behind a stop, for fossils the features themselves."""
    return h.detach() if blend.fossil is None else torch.where(blend.fossil, h, h.detach())


def seed_delta(h: Tensor, x: Tensor, d: Tensor, gates: Params, blend: Blend) -> Tensor:
    """What the seeds add to their rows' features h [B,H,W,n,C]: y = h + delta.

    `x` is seed_input(h, blend), `d` = s(x) − x, `gates` the gates' parameters (looked at only if gated). Features may
    be of less precision than the coefficients: sums and products are in that of the coefficients.
    """
    precise = blend.live.dtype
    wide, d = h.to(precise), d.to(precise)
    added = d
    if blend.multiply is not None:  # what multiplies may be larger than what could be added: 0 · inf is no 0
        added = d.masked_fill(blend.multiply, 0.0)
    factor = blend.live * bound(added, wide)
    if blend.ungated is not None:
        factor = factor * gate(x, gates).masked_fill(blend.ungated, 1.0)
    delta = added * factor
    if blend.stopped is not None:
        delta = delta - blend.stopped * delta.detach()
    if blend.multiplied is not None:
        delta = torch.addcmul(delta, wide * blend.multiplied, torch.tanh(d))
    return delta.to(h.dtype)
