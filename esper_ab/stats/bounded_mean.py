"""Evidence on the mean of differences that holds for every distribution of them, if none can exceed a known size.

Nothing but that size is assumed. The evidence against means of at most m is the capital of a gambler who stakes a share
of it on every difference d, of at least -s: each multiplies it by 1 + stake (d - m) / (m + s), which is never negative
and whose mean is at most 1 if that of d is at most m. So the capital reaches 1/p with a chance of at most p, at any
number of looks (Ville's inequality; Waudby-Smith & Ramdas 2024). The capital here is divided among several stakes.

If n differences are nearly equal to c, a stake of 1 has the largest possible evidence, (1 + c/s)^n: a difference of -s
in a share q = c / (c + s) of all pairs would make the mean 0, and strike none of n with a chance of (1 - q)^n, which is
(1 + c/s)^-n. The largest stake here is a little less, because with 1 a single difference of -s would take all of it.
"""

from __future__ import annotations

import math

import numpy as np

from esper_ab.stats.floats import Floats

STAKES = (0.95, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)  # the smaller ones find small means in much noise
PARTS = (0.75, 0.12, 0.06, 0.04, 0.02, 0.01)  # of the capital
_LOG_PARTS = np.log(PARTS)
_BISECTIONS = 48


def log_evidence(differences: Floats, size: float, mean: float = 0.0) -> Floats:
    """Return the natural log of the evidence [...] that the mean of `differences` [..., n] is above `mean`.

    No difference may be below -`size`, and `mean` must be above it.
    """
    gains = np.maximum((differences - mean) / (mean + size), -1.0)  # but for rounding, none is below -1
    growths = np.log1p(np.multiply.outer(STAKES, gains)).sum(axis=-1)  # [stakes, ...], of the logs of their capitals
    log_parts = _LOG_PARTS.reshape(-1, *(1,) * (growths.ndim - 1))
    return np.asarray(np.logaddexp.reduce(growths + log_parts, axis=0))


def interval(differences: Floats, size: float, evidence: float) -> tuple[float, float]:
    """Return the means against which there is less than `evidence` > 1 on either side, for `differences` [n], n > 0.

    Each side is wrong with a chance of at most 1 / `evidence`. No difference may be larger than `size` > 0, in absolute
    value.
    """
    return _lowest_mean(differences, size, evidence), -_lowest_mean(-differences, size, evidence)


def _lowest_mean(differences: Floats, size: float, evidence: float) -> float:
    """Return the largest mean up to which the evidence that the true mean is above it reaches `evidence`."""
    low = -size
    high = float(differences.mean())  # against which there is no evidence
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if middle <= -size:  # all differences are -size
            break
        if float(log_evidence(differences, size, middle)) >= math.log(evidence):
            low = middle
        else:
            high = middle
    return low
