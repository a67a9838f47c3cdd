"""Runs whose outcome is 0 or 1: exact tests and Newcombe's intervals for the difference of two proportions.

For pairs, the test is McNemar's exact test (binomial, over the discordant pairs), and the interval is the hull of two
of method 10 of Newcombe (1998b), with phi corrected for continuity: that of all pairs, and that of the discordant
pairs alone, which share no success. For unpaired runs, the test is Boschloo's exact test, and the
interval is method 10 of Newcombe (1998a), which is the same method with phi = 0. Both intervals combine Wilson's (1927)
intervals of the two proportions by the square-and-add method. If there is a look after every pair, the e-value tests
whether the share of discordant pairs in favour of a is 1/2, with a Beta(1/2, 1/2) mixture; this e-value is a martingale
if the groups do not differ.

Newcombe (1998a), Statistics in Medicine 17, 873-890; (1998b), 17, 2635-2650.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.boschloo import boschloo
from esper_ab.stats.distributions import norm_isf
from esper_ab.stats.fisher import fisher_p
from esper_ab.stats.floats import floats
from esper_ab.stats.mcnemar import mcnemar_p
from esper_ab.stats.wilson import wilson

_MOST_TABLES = 1_000_000  # of two numbers of successes; beyond, Fisher's exact test, which then differs little


class Proportions(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between the shares of runs with outcome `one`, in the outcome's unit, with its exact test."""

    degenerate = False  # an exact test needs no spread
    name: str  # of the test
    ones_a: int  # runs of a with the outcome `one`
    runs_a: int
    ones_b: int
    runs_b: int
    ones_both: int | None  # pairs with this outcome in both runs; None: the runs form no pairs
    one: float  # 1, or 100 in percent
    mean: float
    p: float  # two-sided, exact

    def interval(self, p: float) -> tuple[float, float]:
        """Return the interval at the level 1 - `p`: Newcombe's; for pairs, its hull with that of the discordant pairs.

        Where few pairs disagree, Newcombe's alone is too narrow, because it takes the correlation as known.
        """
        low, high = self.newcombe(p)
        joint_ones = self.ones_both
        if not joint_ones:
            return low, high
        discordant_pairs = msgspec.structs.replace(
            self, ones_a=self.ones_a - joint_ones, ones_b=self.ones_b - joint_ones, ones_both=0
        )
        low_of_discordant, high_of_discordant = discordant_pairs.newcombe(p)
        return min(low, low_of_discordant), max(high, high_of_discordant)

    def newcombe(self, p: float) -> tuple[float, float]:
        """Return Newcombe's interval at the level 1 - `p`."""
        z = float(norm_isf(p / 2.0))
        phi = self._phi()
        share_a = self.ones_a / self.runs_a
        share_b = self.ones_b / self.runs_b
        low_a, high_a = wilson(share_a, self.runs_a, z)
        low_b, high_b = wilson(share_b, self.runs_b, z)
        width_below = _square_and_add(share_a - low_a, high_b - share_b, phi)
        width_above = _square_and_add(high_a - share_a, share_b - low_b, phi)
        return self.mean - self.one * width_below, self.mean + self.one * width_above

    def _phi(self) -> float:
        """Return the correlation within pairs; a positive correlation is corrected for continuity."""
        if self.ones_both is None:
            return 0.0
        n = self.runs_a
        covariance = n * self.ones_both - self.ones_a * self.ones_b
        spread_a = math.sqrt(self.ones_a * (n - self.ones_a))
        spread_b = math.sqrt(self.ones_b * (n - self.ones_b))
        scale = spread_a * spread_b
        if not scale:
            return 0.0
        if covariance < 0:
            return covariance / scale
        return max(covariance - n / 2.0, 0.0) / scale

    def log_evidence(self) -> float:
        """Return the natural log of the e-value of the discordant pairs."""
        joint_ones = self.ones_both or 0
        x = self.ones_a - joint_ones
        y = self.ones_b - joint_ones
        log_mixture = math.lgamma(x + 0.5) + math.lgamma(y + 0.5) - math.lgamma(x + y + 1) - math.log(math.pi)
        return log_mixture + (x + y) * math.log(2.0)

    def anytime_interval(self, evidence: float) -> tuple[float, float] | None:
        """Return the convex hull of the anytime-valid t interval and `interval`, whose width is never 0.

        The latter is taken at half the error, because looks after every pair at one level err too often. Return None if
        the t interval is unbounded, as it is for one pair.
        """
        n = self.runs_a
        discordant_count = self.ones_a + self.ones_b - 2 * (self.ones_both or 0)
        squares = max(self.one**2 * discordant_count - n * self.mean**2, 0.0)
        variance = squares / max(n - 1, 1)
        t_interval = anytime_interval(self.mean, math.sqrt(variance / n), n - 1, float(n), evidence)
        if t_interval is None:
            return None
        low, high = self.interval(0.5 / evidence)
        low_of_t, high_of_t = t_interval
        return min(low, low_of_t), max(high, high_of_t)


def _square_and_add(x: float, y: float, phi: float) -> float:
    """Return the length of the difference of two deviations with correlation `phi`."""
    square = x * x - 2.0 * phi * x * y + y * y
    return math.sqrt(max(square, 0.0))


def proportions(a: ArrayLike, b: ArrayLike, success: float, *, paired: bool) -> Proportions:
    """Compare a [n] and b [m], whose values are all 0 or `success`; n, m > 0, and n = m if `paired`."""
    successes_a = floats(a) == success
    successes_b = floats(b) == success
    x = int(np.sum(successes_a))
    y = int(np.sum(successes_b))
    n = successes_a.size
    m = successes_b.size
    joint_ones = None
    if paired:
        joint_ones = int(np.sum(successes_a & successes_b))
        name = "exact McNemar test"
        p = mcnemar_p(x - joint_ones, y - joint_ones)
    elif n * m <= _MOST_TABLES:
        name = "Boschloo's exact test"
        p = boschloo(x, n, y, m)
    else:
        name = "Fisher's exact test"
        p = fisher_p(x, n, y, m)
    return Proportions(
        name=name,
        ones_a=x,
        runs_a=n,
        ones_b=y,
        runs_b=m,
        ones_both=joint_ones,
        one=success,
        mean=success * (x * m - y * n) / (n * m),
        p=p,
    )
