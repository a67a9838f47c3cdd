"""The score test for the difference of two unpaired proportions, and the interval that inverts it.

The test of no difference is the pooled z test. The interval holds the differences that the same test does not reject,
with the variance at the most likely proportions that have that difference (Mee 1984, without the factor
N / (N - 1) of Miettinen and Nurminen; the proportions are the root of their cubic equation). So the interval excludes 0
exactly if the pooled z test rejects. The p of the test is approximate: plans that use it find their bounds by exact
enumeration (`design.exact_looks`).

Miettinen & Nurminen (1985), Statistics in Medicine 4, 213-226.
"""

from __future__ import annotations

import math

import numpy as np

from esper_ab.stats.distributions import norm_isf, norm_sf
from esper_ab.stats.floats import Floats
from esper_ab.stats.proportions import Proportions

_HALVINGS = 50  # of an interval of length 2 or less


class ScoreDifference(Proportions, frozen=True, kw_only=True):
    """The difference between two shares, with the pooled z test and the interval of the score test."""

    def interval(self, p: float) -> tuple[float, float]:
        """Return the differences that the score test does not reject at the two-sided `p`."""
        z = float(norm_isf(p / 2.0))
        difference = self.mean / self.one
        low = difference if difference <= -1.0 else self._limit(-1.0, difference, z)
        high = difference if difference >= 1.0 else self._limit(1.0, difference, z)
        return self.one * low, self.one * high

    def _limit(self, outer_limit: float, inner_limit: float, z: float) -> float:
        """Return the difference between `inner_limit` and `outer_limit` at which the score is `z`, by bisection."""
        if abs(self._score(outer_limit)) <= z:
            return outer_limit
        for _ in range(_HALVINGS):
            middle = (inner_limit + outer_limit) / 2.0
            if abs(self._score(middle)) > z:
                outer_limit = middle
            else:
                inner_limit = middle
        return outer_limit

    def _score(self, difference: float) -> float:
        """Return the score of `difference`: how many standard errors it lies from the observed difference."""
        share_b = self._likeliest_b(difference)
        share_a = share_b + difference
        variance = share_a * (1.0 - share_a) / self.runs_a + share_b * (1.0 - share_b) / self.runs_b
        deviation = self.mean / self.one - difference
        if variance <= 0.0:
            return 0.0 if deviation == 0.0 else math.copysign(math.inf, deviation)
        return deviation / math.sqrt(variance)

    def _likeliest_b(self, difference: float) -> float:
        """Return the most likely share of b if that of a is larger by `difference`."""
        n = self.runs_a
        m = self.runs_b
        total = n + m
        x = self.ones_a
        y = self.ones_b
        square = (n + 2 * m) * difference - total - x - y
        linear = (m * difference - total - 2 * y) * difference + x + y
        constant = y * difference * (1.0 - difference)
        shift = square / (3.0 * total)
        q = shift**3 - square * linear / (6.0 * total**2) + constant / (2.0 * total)
        width = math.copysign(math.sqrt(max(shift**2 - linear / (3.0 * total), 0.0)), q)
        angle = 0.0
        if width:
            angle = math.acos(min(1.0, max(-1.0, q / width**3)))
        root = 2.0 * width * math.cos((math.pi + angle) / 3.0) - shift
        return min(max(root, 0.0, -difference), 1.0, 1.0 - difference)


def score_difference(x: int, n: int, y: int, m: int, success: float) -> ScoreDifference:
    """Compare x successes in n unpaired runs of a with y in m of b; n, m > 0."""
    z = pooled_z(np.float64(x), n, np.float64(y), m)
    return ScoreDifference(
        name="pooled z test",
        ones_a=x,
        runs_a=n,
        ones_b=y,
        runs_b=m,
        ones_both=None,
        one=success,
        mean=success * (x * m - y * n) / (n * m),
        p=float(2.0 * norm_sf(abs(z))),
    )


def pooled_z(x: Floats | np.float64, n: int, y: Floats | np.float64, m: int) -> Floats:
    """Return the pooled z of x successes in n runs against y in m; 0 if all runs have the same outcome."""
    pooled_share = (x + y) / (n + m)
    variance = pooled_share * (1.0 - pooled_share) * (1.0 / n + 1.0 / m)
    spread = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    return np.where(variance > 0.0, (x / n - y / m) / spread, 0.0)
