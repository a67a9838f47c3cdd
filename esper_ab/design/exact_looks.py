"""Looks at 0/1 outcomes of two groups: bounds, errors and power by exact enumeration of all tables. Pure.

Two counts (x, y) are known at a look. Unpaired: the successes of a and of b. Paired: the discordant pairs in favour of
a and of b. Their distribution at a look, without the tables at which an earlier look decided, is computed from the
look before: the counts of the replicates in between are added, which is a convolution. So no path is simulated, and no
normal distribution is assumed.

Alpha is spent as by `boundaries` (O'Brien & Fleming's function). The bound of a look is the largest p up to alpha with
which the looks so far err with at most the alpha spent, whatever the chance of success that the groups share
(unpaired), or the share of discordant pairs (paired).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import msgspec
import numpy as np
from scipy.signal import fftconvolve
from scipy.special import gammaln, xlogy

from esper_ab.design.boundaries import obrien_fleming_spent
from esper_ab.stats.distributions import norm_isf, norm_sf
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.mcnemar import mcnemar_p
from esper_ab.stats.score_test import pooled_z

Shape = Literal["paired", "unpaired"]
MOST_REPLICATES = 300  # of an exact plan
EARLIEST_LOOK = 6  # replicates; before, no claim is made
_NUISANCES = 60  # values of the nuisance parameter, evenly spaced on the scale of angles
_FINE_NUISANCES = 150  # for the error that a plan states
_SLACK = 0.999  # of alpha is spent, because the largest error may lie between two of these values
_SAME = 1e-9  # p-values that differ by less, relatively, are equal but for rounding


@dataclass(frozen=True, kw_only=True)
class Chances:
    """The chances of the four outcomes of a pair; unpaired trials have those of independent outcomes."""

    only_a: float
    only_b: float
    both: float

    @property
    def shares(self) -> tuple[float, float]:
        """The chances of success of a and of b."""
        return self.only_a + self.both, self.only_b + self.both


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan does at given chances of success."""

    a: float  # chance that a is called better
    b: float
    replicates: float  # expected number at the end


def correlated(share_a: float, share_b: float, correlation: float = 0.0) -> Chances:
    """Return the chances of two outcomes with these shares of successes and this correlation.

    Raises ValueError if no pair of outcomes has this correlation.
    """
    spread = (share_a * (1.0 - share_a) * share_b * (1.0 - share_b)) ** 0.5
    both_succeed = share_a * share_b + correlation * spread
    chances = Chances(only_a=share_a - both_succeed, only_b=share_b - both_succeed, both=both_succeed)
    least_chance = min(chances.only_a, chances.only_b, both_succeed, 1.0 - share_a - share_b + both_succeed)
    if least_chance < -_SAME:
        raise ValueError(f"shares {share_a:g} and {share_b:g} cannot have the correlation {correlation:g}")
    return chances


def exact_looks(replicates: int) -> tuple[int, ...]:
    """Return the numbers of replicates at the looks: half, three quarters and all of them; none before the sixth."""
    half_look = max(-(-replicates // 2), EARLIEST_LOOK)
    later_look = max(-(-3 * replicates // 4), half_look)
    return tuple(sorted({look for look in (half_look, later_look, replicates) if look <= replicates}))


@lru_cache(maxsize=32)
def exact_bounds(shape: Shape, looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Return the bound on the two-sided p at each look; 0.0 for a look that cannot decide.

    At most MOST_REPLICATES replicates.
    """
    spent_shares = [_SLACK * obrien_fleming_spent(alpha, look / looks[-1]) for look in looks]
    nulls = _nulls(shape)
    states = [np.ones((1, 1)) for _ in nulls]
    errors = np.zeros(len(nulls))
    bounds = []
    look_before = 0
    for look, share in zip(looks, spent_shares, strict=True):
        states = [
            _advance(shape, state, look - look_before, chances) for state, chances in zip(states, nulls, strict=True)
        ]
        p = p_values(shape, look)
        levels, level_index = np.unique(np.round(p, 12), return_inverse=True)
        by_level = [np.bincount(level_index.ravel(), weights=state.ravel(), minlength=levels.size) for state in states]
        worst_errors = (errors[:, None] + np.cumsum(by_level, axis=1)).max(axis=0)
        rejectable_levels = int(np.searchsorted(worst_errors, share, side="right"))  # levels that may be rejected
        bound = 0.0
        if 0 < rejectable_levels < levels.size:
            # Halfway to the next level, so that rounding of p moves no table across the bound.
            # A bound above alpha, as McNemar's test of few pairs would allow, would make the interval too narrow.
            bound = min(float(levels[rejectable_levels - 1] + levels[rejectable_levels]) / 2.0, alpha)
        bounds.append(bound)
        rejected_mask = p <= bound
        errors = errors + [float(state[rejected_mask].sum()) for state in states]
        states = [np.where(rejected_mask, 0.0, state) for state in states]
        look_before = look
    return tuple(bounds)


def performance(shape: Shape, looks: Sequence[int], bounds: Sequence[float], chances: Chances) -> Performance:
    """Return how often either group is called better, and the expected number of replicates."""
    state = np.ones((1, 1))
    wins_of_a = wins_of_b = expected = 0.0
    look_before = 0
    for look, bound in zip(looks, bounds, strict=True):
        expected += (look - look_before) * float(state.sum())
        state = _advance(shape, state, look - look_before, chances)
        rejected_mask = p_values(shape, look) <= bound
        lead = np.subtract.outer(np.arange(look + 1), np.arange(look + 1))
        wins_of_a += float(state[rejected_mask & (lead > 0)].sum())
        wins_of_b += float(state[rejected_mask & (lead < 0)].sum())
        state = np.where(rejected_mask, 0.0, state)
        look_before = look
    return Performance(a=wins_of_a, b=wins_of_b, replicates=expected)


def worst_error(shape: Shape, looks: Sequence[int], bounds: Sequence[float]) -> float:
    """Return how often looks at these bounds find a difference where there is none, at the worst nuisance parameter."""
    errors = []
    for chances in _nulls(shape, _FINE_NUISANCES):
        rates = performance(shape, looks, bounds, chances)
        errors.append(rates.a + rates.b)
    return max(errors)


def replicates_needed(shape: Shape, chances: Chances, alpha: float, power: float = 0.8) -> int | None:
    """Return a number of replicates whose default looks find the better group with this power.

    It is the first that suffices from nine tenths of the number that a normal approximation gives; the power does not
    rise with every replicate. None if the chances are equal, or if it is beyond MOST_REPLICATES.
    """
    difference = abs(chances.only_a - chances.only_b)
    if not difference:
        return None
    share_a, share_b = chances.shares
    noise = share_a * (1.0 - share_a) + share_b * (1.0 - share_b)
    if shape == "paired":
        noise = chances.only_a + chances.only_b - difference**2
    z = float(norm_isf(alpha / 2.0) + norm_isf(1.0 - power))
    first_replicates = max(EARLIEST_LOOK, int(0.9 * noise * (z / difference) ** 2))
    for replicates in range(first_replicates, MOST_REPLICATES + 1):
        looks = exact_looks(replicates)
        rates = performance(shape, looks, exact_bounds(shape, looks, alpha), chances)
        if max(rates.a, rates.b) >= power:
            return replicates
    return None


@lru_cache(maxsize=64)
def p_values(shape: Shape, n: int) -> Floats:
    """Return the two-sided p of the plan's test for all counts (x, y) after n replicates [n + 1, n + 1]."""
    counts = floats(np.arange(n + 1))
    if shape == "unpaired":
        z = pooled_z(counts[:, None], n, counts[None, :], n)
        return floats(2.0 * norm_sf(np.abs(z)))
    p = np.ones((n + 1, n + 1))
    for x in range(n + 1):
        for y in range(n + 1 - x):
            p[x, y] = p[y, x] if y < x and x + y <= n else mcnemar_p(x, y)
    return p


def _nulls(shape: Shape, count: int = _NUISANCES) -> list[Chances]:
    """Return chances of groups that do not differ: equal shares of successes or, paired, of discordant pairs.

    Shares of successes up to 1/2 suffice, because exchanging successes and failures changes no p.
    """
    angles = (np.arange(count) + 1.0) * (np.pi / 2.0 / count)
    if shape == "unpaired":
        return [correlated(share, share) for share in np.sin(angles / 2.0) ** 2]
    return [Chances(only_a=share / 2.0, only_b=share / 2.0, both=0.0) for share in np.sin(angles) ** 2]


def _advance(shape: Shape, state: Floats, replicates: int, chances: Chances) -> Floats:
    """Return the distribution of the counts after `replicates` more replicates [n + 1, n + 1]."""
    return floats(np.maximum(fftconvolve(state, _counts(shape, replicates, chances)), 0.0))


def _counts(shape: Shape, n: int, chances: Chances) -> Floats:
    """Return the distribution of the counts of n replicates [n + 1, n + 1]."""
    counts = floats(np.arange(n + 1))
    if shape == "unpaired":
        share_a, share_b = chances.shares
        return np.outer(_binomial(n, share_a), _binomial(n, share_b))
    x = counts[:, None]
    y = counts[None, :]
    other_pairs = n - x - y
    concordant_chance = max(0.0, 1.0 - chances.only_a - chances.only_b)
    log = gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(y + 1.0) - gammaln(np.maximum(other_pairs, 0.0) + 1.0)
    log = (
        log
        + xlogy(x, chances.only_a)
        + xlogy(y, chances.only_b)
        + xlogy(np.maximum(other_pairs, 0.0), concordant_chance)
    )
    return floats(np.where(other_pairs >= 0.0, np.exp(log), 0.0))


def _binomial(n: int, share: float) -> Floats:
    counts = floats(np.arange(n + 1))
    log = gammaln(n + 1.0) - gammaln(counts + 1.0) - gammaln(n - counts + 1.0)
    return floats(np.exp(log + xlogy(counts, share) + xlogy(n - counts, 1.0 - share)))
