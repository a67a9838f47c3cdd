"""Whether a mean difference is above a margin: a one-sided test at planned looks, with stops for hopeless ones.

The test may succeed at the last look and at the one before it, which share its level (Bonferroni). It stops at any look
from which even a fortunate continuation would not reach the bound of the last one. Stops of the second kind never make
a claim, so they cost no level. The test is the t of pairs, supported by the exact test of signs if there are enough
pairs for that to be possible. So with these, it also holds for differences that are not normal, if they are symmetric
where nothing differs.

If the largest possible difference is known, the evidence for any shape (stats/bounded_mean.py) decides instead. It
assumes nothing about the distribution, and may succeed at every look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.stats.bounded_mean import PARTS, STAKES, interval, log_evidence
from esper_ab.stats.distributions import t_isf, t_sf
from esper_ab.stats.floats import Floats
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.one_sided_signs import MAX_PAIRS, one_sided_signs_p, smallest_p

LAST_SHARE = 0.7  # of the level; the look before the last one has the rest, if it has LEAST_PAIRS
_FORTUNE = 1.0  # standard errors by which a fortunate continuation exceeds the mean so far

_POWER_QUANTILE = 0.8416  # of the normal distribution, for a power of 80 %
_LARGEST_LOG = 700.0  # exp() of more would overflow


class OneSidedLook(msgspec.Struct, frozen=True, kw_only=True):
    """The test at one look. A number that cannot be computed from the pairs is None."""

    pairs: int
    mean: float | None
    bound: float  # p required; 0: no claim at this look
    low: float | None = None  # interval of the difference at level 1 - alpha, for all looks together
    high: float | None = None
    p: float | None = None  # one-sided, of the t
    signs_p: float | None = None  # of the exact test, if the claim needs it
    evidence: float | None = None  # for any shape, in place of both, of which 1 / bound is required
    crossed: bool = False  # the difference is shown to be above the margin
    hopeless: bool = False  # not crossed, and the last look would hardly cross


class OneSidedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test before its first pair: when it looks, and how sure it must be."""

    looks: tuple[int, ...]  # ascending numbers of pairs
    margin: float
    level: float  # largest chance to claim a difference that is not above the margin
    alpha: float  # of the interval
    size: float | None = None  # the largest possible difference; None: the t and the signs decide

    def bound(self, look: int) -> float:
        """Return the p required at this look, which is 0 where nothing can be claimed."""
        if self.size is not None:
            return self.level if look >= LEAST_PAIRS else 0.0
        earlier_looks = [pairs for pairs in self.looks[:-1] if pairs >= LEAST_PAIRS]
        if not earlier_looks:
            return self.level if look == self.looks[-1] else 0.0
        if look == self.looks[-1]:
            return self.level * LAST_SHARE
        return self.level * (1.0 - LAST_SHARE) if look == earlier_looks[-1] else 0.0

    @property
    def reach(self) -> float:
        """The improvement beyond the margin that the last look can show.

        For the t, in standard deviations of the pairs' differences, with a chance of 80 %. For any shape, in the unit
        of the outcome, if all differences were equal; below it, nothing can be shown.
        """
        pairs = self.looks[-1]
        bound = self.bound(pairs)
        if self.size is None:
            return (float(t_isf(bound, pairs - 1)) + _POWER_QUANTILE) / math.sqrt(pairs)
        growth = math.expm1((-math.log(bound) - math.log(PARTS[0])) / pairs) / STAKES[0]
        return growth * (self.size + self.margin)

    def at(self, look: int, differences: Sequence[float]) -> OneSidedLook:
        """Take a look at the pairs' differences of the first `look` seeds, some of whose pairs may be lost."""
        d = np.asarray(differences, dtype=np.float64)
        bound = self.bound(look)
        if d.size < 2:
            mean = float(d[0]) if d.size else None
            is_last = look == self.looks[-1]
            return OneSidedLook(pairs=d.size, mean=mean, bound=bound, hopeless=is_last)
        mean = float(d.mean())
        se = float(d.std(ddof=1)) / math.sqrt(d.size)
        half_width = float(t_isf(self.alpha / len(self.looks) / 2.0, d.size - 1)) * se
        taken_look = OneSidedLook(pairs=d.size, mean=mean, bound=bound, low=mean - half_width, high=mean + half_width)
        if self.size is not None:
            return self._add_evidence(taken_look, d, se, self.size)
        p = _t_p(mean - self.margin, se, d.size)
        signs_p = _signs_p(d - self.margin, bound)
        crossed = _is_shown(p, signs_p, bound, se, d.size)
        is_hopeless = not crossed and self._is_hopeless(mean - self.margin, se, d.size)
        return msgspec.structs.replace(taken_look, p=p, signs_p=signs_p, crossed=crossed, hopeless=is_hopeless)

    def _add_evidence(self, look: OneSidedLook, d: Floats, se: float, size: float) -> OneSidedLook:
        """Return the look with the evidence for any shape, whose interval replaces that of the t."""
        log_e = float(log_evidence(d, size, self.margin))
        crossed = look.bound > 0.0 and log_e >= -math.log(self.level)
        is_hopeless = False
        if not crossed:
            repeats = math.ceil(self.looks[-1] / d.size)
            fortunate = np.minimum(np.tile(d + _FORTUNE * se, repeats)[: max(self.looks[-1], d.size)], size)
            is_hopeless = float(log_evidence(fortunate, size, self.margin)) < -math.log(self.level)
        low, high = interval(d, size, 2.0 / self.alpha)
        return msgspec.structs.replace(
            look,
            low=low,
            high=high,
            evidence=math.exp(min(log_e, _LARGEST_LOG)),
            crossed=crossed,
            hopeless=is_hopeless,
        )

    def _is_hopeless(self, excess: float, se: float, pairs: int) -> bool:
        """Whether the last look would not cross with the same SD and a mean that is one standard error larger."""
        fortunate = excess + _FORTUNE * se
        last_pairs = max(self.looks[-1], pairs)
        if fortunate <= 0.0:
            return True
        return _t_p(fortunate, se * math.sqrt(pairs / last_pairs), last_pairs) > self.bound(self.looks[-1])


def _is_shown(p: float, signs_p: float | None, bound: float, se: float, pairs: int) -> bool:
    if pairs < LEAST_PAIRS or not bound or p > bound:
        return False
    if signs_p is not None:
        return signs_p <= bound
    return se > 0.0  # differences that are all the same have no t


def _signs_p(excess: Floats, bound: float) -> float | None:
    """Return the p of the exact test; None if it is not needed.

    It is needed if so few pairs can reach the bound, or if they have few different sizes, as where outcomes are counts.
    """
    if not bound or excess.size > MAX_PAIRS:
        return None
    sizes = np.abs(excess)
    distinct_sizes = np.unique(np.round(sizes / max(float(sizes.max()), 1e-300), 9)).size
    if smallest_p(excess.size) > bound and 2 * distinct_sizes > excess.size:
        return None
    return one_sided_signs_p(excess)


def _t_p(excess: float, se: float, pairs: int) -> float:
    """Return the one-sided p of the t; without any spread it is 0 or 1."""
    if se <= 0.0:
        return 0.0 if excess > 0.0 else 1.0
    return float(t_sf(excess / se, pairs - 1))
