"""Boschloo's exact test: do unpaired runs of two groups succeed equally often?

Fisher's exact test takes the total number of successes as given, which no experiment fixes, and so falsely finds a
difference far less often than its p says. Boschloo (1970) uses Fisher's p as a statistic: p is the largest probability,
over all chances of success that the groups may share, of a Fisher's p as small as the observed one. It is never larger
than Fisher's p, and as exact. Both p are two-sided.

Boschloo (1970), Statistica Neerlandica 24, 1-35.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from esper_ab.stats.floats import Floats, floats

_EQUAL = 1.0 + 1e-9  # likelihoods and p-values that differ by less, relatively, are equal but for rounding
_FINENESS = 20.0  # times sqrt(n + m): chances of success that are tried, evenly spaced on the scale of angles
_NEAR_BEST = 0.99  # of the largest probability found so: maxima as high are located precisely
_SECTIONS = 40  # golden ones of an interval between angles
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


@lru_cache(maxsize=4096)
def boschloo(x: int, n: int, y: int, m: int) -> float:
    """Return the two-sided exact p of x successes in n runs against y in m; n, m > 0."""
    tables = _Tables(x, n, y, m)
    # Exchanging successes and failures changes no p, so chances up to 1/2 suffice; the last angle is beyond it.
    steps = math.ceil(_FINENESS * math.sqrt(n + m))
    angles = floats(np.arange(steps + 2) * (math.pi / 2.0 / steps))
    probabilities = np.concatenate([[0.0], tables.probability(angles[1:])])
    best_probability = float(probabilities.max())
    for index in range(1, steps + 1):
        neighbours = max(probabilities[index - 1], probabilities[index + 1])
        if probabilities[index] >= max(neighbours, _NEAR_BEST * best_probability):
            best_probability = max(best_probability, tables.largest(angles[index - 1], angles[index + 1]))
    return min(1.0, best_probability)


class _Tables:
    """All tables of n and m runs whose Fisher's p is at most that of x and y successes."""

    def __init__(self, x: int, n: int, y: int, m: int) -> None:
        self.ways_a = _log_ways(n)
        self.ways_b = _log_ways(m)
        p = _fisher(self.ways_a, self.ways_b)
        self.counted = (p <= p[x, y] * _EQUAL).astype(np.float64)  # [n + 1, m + 1]

    def probability(self, angles: Floats) -> Floats:
        """Return their probability at chances of success sin(angle / 2)^2, 0 < angle < pi [angles]."""
        hit = 2.0 * np.log(np.sin(angles / 2.0))[:, None]
        miss = 2.0 * np.log(np.cos(angles / 2.0))[:, None]
        probabilities_a = _binomial(self.ways_a, hit, miss)
        probabilities_b = _binomial(self.ways_b, hit, miss)
        return np.asarray(((probabilities_a @ self.counted) * probabilities_b).sum(axis=1))

    def largest(self, low: float, high: float) -> float:
        """Return the largest probability between two angles, where there is one maximum, by golden section."""
        near_chance = high - _GOLDEN * (high - low)
        far_chance = low + _GOLDEN * (high - low)
        value_near = self._probability_at(near_chance)
        value_far = self._probability_at(far_chance)
        for _ in range(_SECTIONS):
            if value_near >= value_far:
                high = far_chance
                far_chance = near_chance
                value_far = value_near
                near_chance = high - _GOLDEN * (high - low)
                value_near = self._probability_at(near_chance)
            else:
                low = near_chance
                near_chance = far_chance
                value_near = value_far
                far_chance = low + _GOLDEN * (high - low)
                value_far = self._probability_at(far_chance)
        return max(value_near, value_far)

    def _probability_at(self, angle: float) -> float:
        return float(self.probability(np.array([angle]))[0])


def _binomial(log_ways: Floats, hit: Floats, miss: Floats) -> Floats:
    """Return the probabilities of 0 ... n successes [angles, n + 1], from logs of the chances of one [angles, 1]."""
    n = len(log_ways) - 1
    successes = np.arange(n + 1)
    failures = np.arange(n, -1, -1)
    return np.asarray(np.exp(log_ways + successes * hit + failures * miss))


def _fisher(ways_a: Floats, ways_b: Floats) -> Floats:
    """Return Fisher's two-sided p of all tables [n + 1, m + 1]; given: the logs of the binomial coefficients."""
    n = len(ways_a) - 1
    m = len(ways_b) - 1
    p = np.empty((n + 1, m + 1))
    for total in range(n + m + 1):
        a = np.arange(max(0, total - m), min(n, total) + 1)
        log = ways_a[a] + ways_b[total - a]
        likelihoods = np.exp(log - log.max())
        ordered_likelihoods = np.sort(likelihoods)
        cumulated = np.cumsum(ordered_likelihoods)
        last_index = np.searchsorted(ordered_likelihoods, likelihoods * _EQUAL, side="right") - 1
        p[a, total - a] = cumulated[last_index] / cumulated[-1]
    return p


def _log_ways(n: int) -> Floats:
    """Return the logs of the binomial coefficients of n [n + 1]."""
    log_factorials = np.array([math.lgamma(k + 1.0) for k in range(n + 1)])
    return floats(log_factorials[n] - log_factorials - log_factorials[::-1])
