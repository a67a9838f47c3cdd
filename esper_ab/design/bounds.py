"""The p that a comparison must reach at each look of a plan. Simulating it takes up to a second, once per process. The
simulation is seeded by its arguments, so the same plan has the same bounds wherever it is made.
"""

from __future__ import annotations

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
    beta: float = 0.0  # 0.0: the bounds of `alphas`; else the bounds of futility, without alphas
    prior_df: int = 0


def find_bounds(
    sides: Sides,
    positions: int,
    looks: tuple[int, ...],
    alphas: tuple[float, ...],
    *,
    beta: float = 0.0,
    prior_df: int = 0,
) -> tuple[tuple[float, ...], ...]:
    """Return the thresholds for p, [alphas][looks], from `design/boundaries.py`.

    If `beta` is given, `alphas` must be empty, and the result is one row: the thresholds for futility. `sides` has the
    positions of both groups in each replicate; `positions` is the number of possible positions (1: no adjustment).
    `prior_df`: of moderated variances; 0: comparisons have their own.
    """
    if len(looks) == 1 and not beta:
        return tuple((alpha,) for alpha in alphas)
    used_sides = tuple((a, b) for a, b in sides[: looks[-1]])
    return _simulated(
        _Arguments(
            method=_METHOD,
            sides=used_sides,
            positions=positions,
            looks=looks,
            alphas=alphas,
            beta=beta,
            prior_df=prior_df,
        )
    )


@cache
def _simulated(arguments: _Arguments) -> tuple[tuple[float, ...], ...]:
    import hashlib  # imported here, because a plan with one look, and `status`, need none of these

    import numpy as np  # as above

    from esper_ab.design.boundaries import beta_spent, futility_p, nominal_p  # as above
    from esper_ab.design.t_process import t_process  # as above

    digest = hashlib.sha256(msgspec.json.encode(arguments)).hexdigest()
    rng = np.random.Generator(np.random.PCG64(int(digest, 16)))
    looks = arguments.looks
    process = t_process(arguments.sides, arguments.positions, looks, arguments.prior_df)
    if not arguments.beta:
        return nominal_p(process, looks, arguments.alphas, rng)
    spent_beta = [beta_spent(arguments.beta, look / looks[-1]) for look in looks[:-1]]
    return (futility_p(process, looks, spent_beta, rng),)
