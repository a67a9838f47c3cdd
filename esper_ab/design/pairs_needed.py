"""Number of pairs needed to detect a difference of a given size, from the pairs' spread, never from the pairs' mean.

The power is that of the two-sided paired t-test, computed with the noncentral t distribution; with 7 or 8 pairs, it is
that of the t-test and the exact sign-flip test together, as a claim needs both. With 11 to 20 pairs a claim needs both,
too, but the second costs less than a point at 5 % and is not counted. The range of the number of pairs comes from chi-
square limits of the SD. If the p that rejects depends on the number of pairs, `p_bound` is a function of that number.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec
import numpy as np

from esper_ab.stats.distributions import chi2_ppf, nct_sf, t_isf
from esper_ab.stats.least_pairs import LEAST_PAIRS, smallest_p
from esper_ab.stats.sd_limits import sd_limits
from esper_ab.stats.signs_support import COSTLY, support

POWER = 0.8
SD_LIMITS = 0.8  # confidence of the range due to the uncertainty of the SD
MOST_NAMED = 10_000  # pairs; larger numbers are reported as "more than 10,000"
_MOST = 1 << 40

PBound = float | Callable[[int], float]  # two-sided p that rejects, or a function of the number of pairs


class PairsNeeded(msgspec.Struct, frozen=True, kw_only=True):
    """The pairs for 80 % power at `margin`, at least LEAST_PAIRS; `low` and `high` are for the SD's 80 % limits."""

    margin: float
    alpha: float  # two-sided p that rejects with `pairs` pairs
    pairs: int
    low: int
    high: int


def power(sd: float, margin: float, pairs: int, alpha: float, columns: int = 1, *, signed: bool = True) -> float:
    """Return P(the rule rejects in the right direction | true mean difference = margin, SD of differences = sd).

    The rule is the two-sided paired t at `alpha` and, if `signed`, the exact sign-flip test where it costs power.
    `columns` is the number of columns of the design (tau and the position effects), so df = pairs - columns. Prior
    degrees of freedom of moderated variances are subtracted from it.
    """
    df = pairs - columns
    if df < 1 or alpha <= 0.0:
        return 0.0
    bound = float(t_isf(alpha / 2.0, df))
    shift = margin * math.sqrt(pairs) / sd
    # The far tail is omitted, because it would only add rejections in the wrong direction.
    if not (signed and needs_signs(pairs, alpha)):
        return float(nct_sf(bound, df, shift))
    return _power_with_signs(bound, df, shift, pairs, alpha)


def needs_signs(pairs: int, alpha: float) -> bool:
    """True if power counts the exact sign-flip test, which a claim at `alpha` also needs and so few pairs can pass."""
    return pairs in COSTLY and smallest_p(pairs) <= alpha


def _power_with_signs(bound: float, df: int, shift: float, pairs: int, alpha: float) -> float:
    """Return the probability that t, noncentral by `shift`, is beyond `bound` and the sign-flip test agrees."""
    grid, shares = support(pairs, df, alpha)
    ends = np.array([bound, *grid[grid > bound]])
    shares_at_ends = np.interp(ends, grid, shares)
    beyond_probability = np.array([float(nct_sf(end, df, shift)) for end in ends])
    between_probability = (
        (beyond_probability[:-1] - beyond_probability[1:]) * (shares_at_ends[:-1] + shares_at_ends[1:]) / 2.0
    )
    return float(np.sum(between_probability) + beyond_probability[-1])


def pairs_needed(sd: float, df: int, margin: float, p_bound: PBound = 0.05, columns: int = 1) -> PairsNeeded:
    """Compute the pairs needed for `margin` > 0.

    `sd` > 0 is the SD of the differences, in the unit of `margin`, and has `df` degrees of freedom.
    """
    # The anytime-valid rule, whose bound depends on the number of pairs, needs no second test.
    sd_low, sd_high = sd_limits(sd, df, SD_LIMITS)
    pairs = fewest_pairs(sd, margin, p_bound, columns)
    return PairsNeeded(
        margin=margin,
        alpha=_bound_at(p_bound, pairs),
        pairs=pairs,
        low=fewest_pairs(sd_low, margin, p_bound, columns),
        high=fewest_pairs(sd_high, margin, p_bound, columns),
    )


def smallest_resolvable(sd: float, pairs: int, alpha: float, columns: int = 1, *, signed: bool = True) -> float | None:
    """Return the true difference that `pairs` pairs detect with 80 % power, by the rule that `power` describes.

    Return None if there is no such difference. `sd` > 0 is the SD of the differences; the result has the same unit.
    """
    if pairs - columns < 1 or alpha <= 0.0:
        return None
    from scipy import optimize  # slow to import, and only here

    df = pairs - columns
    # With this noncentrality the power is above 0.92: P(chi above its 95 % point) + P(normal below -2) < 0.08.
    reach = float(t_isf(alpha / 2.0, df))
    if signed and needs_signs(pairs, alpha):
        reach = max(reach, math.sqrt(df * (pairs - 1)))  # from which the sign-flip test always agrees
    shift = reach * math.sqrt(float(chi2_ppf(0.95, df)) / df) + 2.0
    largest_size = shift / math.sqrt(pairs)

    def missing_power(size: float) -> float:
        return power(1.0, size, pairs, alpha, columns, signed=signed) - POWER

    return sd * float(optimize.brentq(missing_power, 0.0, largest_size))


def _bound_at(p_bound: PBound, pairs: int) -> float:
    return p_bound(pairs) if callable(p_bound) else p_bound


def fewest_pairs(sd: float, margin: float, p_bound: PBound, columns: int = 1) -> int:
    """Return the pairs that detect `margin` with 80 % power; `sd` > 0 is the SD of the differences."""

    def is_enough(pairs: int) -> bool:
        alpha = _bound_at(p_bound, pairs)
        if power(sd, margin, pairs, alpha, columns, signed=False) < POWER:
            return False
        return callable(p_bound) or power(sd, margin, pairs, alpha, columns) >= POWER

    low = max(LEAST_PAIRS, columns + 1)
    while low <= max(COSTLY):  # a pair more may cost power here: a claim then needs a second test
        if is_enough(low):
            return low
        low += 1
    high = 2 * low
    while not is_enough(high) and high < _MOST:
        low = high
        high = high * 2
    while low < high:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle + 1
    return low
