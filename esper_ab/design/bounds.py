"""The p that a comparison must reach at each look of a plan.

The computation takes up to a second, so its result is cached in the process. The simulation is seeded by its arguments,
so equal plans have equal bounds on every machine.
"""

from __future__ import annotations

import hashlib
from functools import cache

import msgspec

from esper_ab.design.counterbalance import Sides

_METHOD = 1  # part of the seed; increment when the computation changes


class _Arguments(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    method: int
    sides: tuple[tuple[int, int], ...]
    positions: int
    looks: tuple[int, ...]
    alphas: tuple[float, ...]
    beta: float = 0.0  # 0.0: the bounds of `alphas`; else those of futility, and no alphas


def find_bounds(
    sides: Sides, positions: int, looks: tuple[int, ...], alphas: tuple[float, ...], *, beta: float = 0.0
) -> tuple[tuple[float, ...], ...]:
    """Return the thresholds for p, [alphas][looks], from `design/boundaries.py`.

    With `beta`, `alphas` must be empty, and the result is one row with the thresholds for futility. `sides` are the
    positions of the two groups by replicate, and `positions` is the number of positions to adjust for (1: none).
    """
    if len(looks) == 1 and not beta:
        return tuple((alpha,) for alpha in alphas)
    used = tuple((a, b) for a, b in sides[: looks[-1]])
    return _simulated(
        _Arguments(method=_METHOD, sides=used, positions=positions, looks=looks, alphas=alphas, beta=beta)
    )


@cache
def _simulated(asked: _Arguments) -> tuple[tuple[float, ...], ...]:
    import numpy as np

    # Here, because a plan with one look needs neither numpy nor scipy.
    from esper_ab.design.boundaries import beta_spent, futility_p, nominal_p

    rng = np.random.Generator(np.random.PCG64(int(hashlib.sha256(msgspec.json.encode(asked)).hexdigest(), 16)))
    if not asked.beta:
        return nominal_p(asked.sides, asked.positions, asked.looks, asked.alphas, rng)
    spent = [beta_spent(asked.beta, look / asked.looks[-1]) for look in asked.looks[:-1]]
    return (futility_p(asked.sides, asked.positions, asked.looks, spent, rng),)
