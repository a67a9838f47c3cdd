"""The price of claims that hold whatever the shapes of the groups' distributions (`--shape any`), in pairs. Pure.

Everything is computed with normal differences. `stats/bounded_mean` has the evidence, of which 2 / alpha is required on
each side. Sizes, effects and standard deviations are in one unit.
"""

from __future__ import annotations

import math
from functools import cache

import msgspec
import numpy as np

from esper_ab.design.design import Design
from esper_ab.design.pairs_needed import POWER
from esper_ab.stats.bounded_mean import PARTS, STAKES
from esper_ab.stats.distributions import norm_isf
from esper_ab.stats.floats import Floats

MOST_PAIRS = 1 << 40
_NODES = 40  # of the quadrature over a normal variable
_LARGEST_RATIO = 20.0  # of the stake's spread to the capital, at the end of the table
_STEPS = 400
_BISECTIONS = 50


class ShapeBound(msgspec.Struct, frozen=True, kw_only=True):
    """What claims for any shape need, with the standard deviation of the differences as the unit."""

    size: float  # the largest possible difference
    evidence: float  # required on each side of an interval
    margin: float = 0.0  # of the claim that a group is not worse, which is about the differences plus the margin


def required_evidence(alpha: float) -> float:
    """Return the evidence that each side of an interval requires: either side is wrong with a chance of alpha / 2."""
    return 2.0 / alpha


def log_evidence_of(mean: Floats, sd: Floats, pairs: Floats, size: float) -> Floats:
    """Return the log of the evidence that the mean of `pairs` normal differences is above 0, by their mean and SD.

    All arrays have one shape. What a sample's higher moments add is left out.
    """
    capitals = []
    for stake, part in zip(STAKES, PARTS, strict=True):
        kept_share = np.maximum(1.0 + stake * mean / size, 1e-9)
        spread_loss = _spread_loss(stake * sd / size / kept_share)
        capitals.append(math.log(part) + pairs * (np.log(kept_share) + spread_loss))
    return np.asarray(np.logaddexp.reduce(capitals, axis=0))


def fewest_pairs(sd: float, difference: float, size: float, evidence: float) -> int:
    """Return the pairs whose evidence for a true `difference` > 0 suffices in 80 % of experiments; at most MOST_PAIRS.

    `sd` >= 0 is that of the differences; with 0, that is the least number of pairs for any spread.
    """
    quantile = float(norm_isf(1.0 - POWER))
    fewest = MOST_PAIRS
    for stake, part in zip(STAKES, PARTS, strict=True):
        mean_gain, sd_of_gain = _gain(sd, difference, stake / size)
        if mean_gain <= 0.0:
            continue
        # The least n at which n gains exceed the log of what is required by as many of their SDs as the power needs.
        needed_gain = math.log(evidence / part)
        spread = quantile * sd_of_gain
        root = (spread + math.sqrt(spread**2 + 4.0 * mean_gain * needed_gain)) / (2.0 * mean_gain)
        fewest = min(fewest, math.ceil(root**2 - 1e-9))
    return fewest


def seeds_for_any_shape(design: Design, alpha: float, sd: float) -> int:
    """Return the seeds whose evidence for any shape suffices for the claim of the design, as in `fewest_pairs`.

    `alpha` is the comparison's share, and `sd` that of the differences. A difference of the margin is to be found, or
    groups that do not differ are to be shown to be not worse.
    """
    size = design.largest_difference()
    evidence = required_evidence(alpha)
    if design.non_inferiority is not None:  # one-sided, and about the differences plus the margin
        size -= design.margin
        evidence /= 2.0
    return fewest_pairs(sd, design.margin, size, evidence)


def smallest_difference(sd: float, pairs: int, size: float, evidence: float) -> float | None:
    """Return the true difference for which `pairs` suffice, as in `fewest_pairs`; None if no possible one is enough."""
    low = 0.0
    high = size
    if fewest_pairs(sd, high, size, evidence) > pairs:
        return None
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if fewest_pairs(sd, middle, size, evidence) <= pairs:
            high = middle
        else:
            low = middle
    return high


def _gain(sd: float, difference: float, stake: float) -> tuple[float, float]:
    """Return mean and SD of log(1 + `stake` d) for a normal d, at least -1 / `stake`."""
    nodes, weights = _quadrature()
    gains = np.log(np.maximum(1.0 + stake * (difference + sd * nodes), 1e-9))
    mean = float(weights @ gains)
    return mean, math.sqrt(max(0.0, float(weights @ (gains - mean) ** 2)))


def _spread_loss(ratio: Floats) -> Floats:
    """Return the mean of log(1 + `ratio` z) for a normal z, at most 0."""
    grid, losses = _losses()
    return np.asarray(np.interp(ratio, grid, losses))


@cache
def _losses() -> tuple[Floats, Floats]:
    """Return ratios and the losses at these."""
    nodes, weights = _quadrature()
    grid = np.linspace(0.0, 1.0, _STEPS) ** 2 * _LARGEST_RATIO
    losses = np.log(np.maximum(1.0 + grid[:, None] * nodes, 1e-9)) @ weights
    return grid, np.minimum(losses, 0.0)


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights for the mean of a function of a standard normal variable."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()
