"""The bound on p of experiments that are pooled as one larger experiment.

Two kinds of looks have been taken before the pooled one, and both are paid for.

- At earlier poolings: whether another experiment was launched may depend on all earlier ones. The pooled answer of k
  experiments gets alpha / 2^(k - 1), so that those of 2, 3, … experiments together err in at most alpha, whatever
  decided that an experiment was the last one (Bonferroni over the possible numbers of experiments).
- Within an experiment that stopped early, because its own interim look had decided. The pairs that it did not run are
  counted in the standard error: t is multiplied by the root of (pairs used / pairs planned). For Brownian motion W that
  stops at T <= 1, P(W(T) >= c) <= 2 P(W(1) >= c) whatever the rule (reflection principle); for stops at crossed bounds
  it is at most P(W(1) >= c) in simulation (docs/evidence/pooled.md).
"""

from __future__ import annotations

import math

from esper_ab.stats.distributions import t_isf, t_sf


def alpha_of_pooling(alpha: float, experiments: int) -> float:
    """Return the share of `alpha` that the pooled answer of this number of experiments gets; all of it for one."""
    return float(alpha / 2.0 ** (experiments - 1))


def bound_after_early_stops(alpha: float, df: float, pairs: int, planned_pairs: int) -> float:
    """Return the bound on the two-sided p of a t with `df` degrees of freedom that keeps `alpha`.

    `pairs` exist; without early stops there would be `planned_pairs`, at least as many.
    """
    if pairs == planned_pairs:
        return alpha
    t = float(t_isf(alpha / 2.0, df)) * math.sqrt(planned_pairs / pairs)
    return float(2.0 * t_sf(t, df))
