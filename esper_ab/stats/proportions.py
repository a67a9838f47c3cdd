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
from collections.abc import Sequence

import msgspec

from esper_ab.stats.anytime_t import anytime_interval
from esper_ab.stats.boschloo import boschloo
from esper_ab.stats.distributions import f_ppf, norm_isf

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
        (low, high) = self.newcombe(p)
        both = self.ones_both
        if not both:
            return low, high
        alone = msgspec.structs.replace(self, ones_a=self.ones_a - both, ones_b=self.ones_b - both, ones_both=0)
        return min(low, alone.newcombe(p)[0]), max(high, alone.newcombe(p)[1])

    def newcombe(self, p: float) -> tuple[float, float]:
        """Return Newcombe's interval at the level 1 - `p`."""
        z = float(norm_isf(p / 2.0))
        phi = self._phi()
        share_a = self.ones_a / self.runs_a
        share_b = self.ones_b / self.runs_b
        (low_a, high_a) = wilson(share_a, self.runs_a, z)
        (low_b, high_b) = wilson(share_b, self.runs_b, z)
        below, above = (
            self.one * math.sqrt(max(x * x - 2.0 * phi * x * y + y * y, 0.0))
            for x, y in ((share_a - low_a, high_b - share_b), (high_a - share_a, share_b - low_b))
        )
        return self.mean - below, self.mean + above

    def _phi(self) -> float:
        """Return the correlation within pairs; a positive correlation is corrected for continuity."""
        if self.ones_both is None:
            return 0.0
        n = self.runs_a
        above = self.runs_a * self.ones_both - self.ones_a * self.ones_b
        scale = math.sqrt(self.ones_a * (n - self.ones_a)) * math.sqrt(self.ones_b * (n - self.ones_b))
        if scale:
            return (min(above, 0.0) or max(above - n / 2.0, 0.0)) / scale
        return 0.0

    def log_evidence(self) -> float:
        """Return the natural log of the e-value of the discordant pairs."""
        x = self.ones_a - (self.ones_both or 0)
        y = self.ones_b - (self.ones_both or 0)
        mixed = math.lgamma(x + 0.5) + math.lgamma(y + 0.5) - math.lgamma(x + y + 1) - math.log(math.pi)
        return mixed + (x + y) * math.log(2.0)

    def anytime_interval(self, evidence: float) -> tuple[float, float] | None:
        """Return the convex hull of the anytime-valid t interval and `interval`, whose width is never 0.

        The latter is taken at half the error, because looks after every pair at one level err too often. Return None if
        the t interval is unbounded, as it is for one pair.
        """
        n = self.runs_a
        apart = self.ones_a + self.ones_b - 2 * (self.ones_both or 0)
        variance = max(self.one**2 * apart - n * self.mean**2, 0.0) / max(n - 1, 1)
        found = anytime_interval(self.mean, math.sqrt(variance / n), n - 1, float(n), evidence)
        low, high = self.interval(0.5 / evidence)
        if found is None:
            return None
        return (min(low, found[0]), max(high, found[1]))


def proportions(a: Sequence[float], b: Sequence[float], one: float, *, paired: bool) -> Proportions:
    """Compare a [n] and b [m], whose values are all 0 or `one`; n, m > 0, and n = m if `paired`."""
    x = a.count(one)
    y = b.count(one)
    n = len(a)
    m = len(b)
    if paired:
        both = sum(one_a == one_b == one for one_a, one_b in zip(a, b, strict=True))
        name = "exact McNemar test"
        p = _mcnemar(x - both, y - both)
    elif n * m <= _MOST_TABLES:
        name = "Boschloo's exact test"
        p = boschloo(x, n, y, m)
    else:
        name = "Fisher's exact test"
        p = _fisher(x, n, y, m)
    return Proportions(
        name=name,
        ones_a=x,
        runs_a=n,
        ones_b=y,
        runs_b=m,
        ones_both=both if paired else None,
        one=one,
        mean=one * (x * m - y * n) / (n * m),
        p=p,
    )


def _mcnemar(x: int, y: int) -> float:
    """Return the two-sided exact p of x discordant pairs in favour of a and y in favour of b."""
    return min(1.0, float(2 * sum(math.comb(x + y, k) for k in range(min(x, y) + 1)) / 2 ** (x + y)))


def _fisher(x: int, n: int, y: int, m: int) -> float:
    """Return the two-sided exact p of x of n against y of m, summed over all tables at most as likely as this one.

    Likelihoods are compared as integers, so which tables count does not depend on rounding.
    """
    ways = {k: math.comb(n, k) * math.comb(m, x + y - k) for k in range(max(0, x + y - m), min(n, x + y) + 1)}
    return float(sum(count for count in ways.values() if count <= ways[x]) / sum(ways.values()))


def wilson(share: float, n: int, z: float) -> tuple[float, float]:
    """Return Wilson's limits for a proportion of `share` in n runs; the interval always contains `share`."""
    scale = 1.0 + z * z / n
    half = z * math.sqrt(share * (1.0 - share) / n + (z / (2.0 * n)) ** 2)
    centre = share + z * z / (2.0 * n)
    return min(share, (centre - half) / scale), max(share, (centre + half) / scale)


def share_limits(count: int, n: int, missed: float) -> tuple[float, float]:
    """Return the exact limits, at the level 1 - `missed`, of a share of which `count` > 0 of `n` > count were seen.

    Clopper & Pearson (1934), Biometrika 26, 404-413.
    """
    fewer = n - count + 1
    more = count + 1
    below = f_ppf(missed / 2.0, 2 * count, 2 * fewer)
    above = f_ppf(1.0 - missed / 2.0, 2 * more, 2 * (n - count))
    return 1.0 / (1.0 + fewer / (count * float(below))), 1.0 / (1.0 + (n - count) / (more * float(above)))
