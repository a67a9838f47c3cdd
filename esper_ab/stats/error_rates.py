"""How often a rule falsely claims a difference between groups of unequal shape, from rates simulated beforehand.

A t-test of differences keeps its error rate if both groups have the same shape. Between a skewed and a tight group it
does not. `scripts/error_rates` simulated how often each kind of plan then claims a difference although the means are
equal, and wrote `error_rate_table`. The shape of the differences selects the rate:

- Some differences lie further from all others than those lie from one another, on the side against the claim: a group
  rarely collapses. The rate is that of groups whose runs collapse as often and as deeply.
- Otherwise their skewness against the claim, compared with that of samples in which laws of known skewness were falsely
  claimed to differ: the rate is that of the law of which half of those samples are more skewed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from esper_ab.stats import error_rate_table as table
from esper_ab.stats.clopper_pearson import share_limits
from esper_ab.stats.floats import Floats
from esper_ab.stats.skewness import skewness

Looks = Literal["one look", "several looks", "after every pair"]
_RARE = 3  # a tail is at most one difference in three
_MISSED = 0.05  # by the limits of the share of a tail


class LookPlan(msgspec.Struct, frozen=True, kw_only=True):
    """When comparisons are tested, and how many share alpha."""

    looks: Looks
    first: int  # pairs at the first look; not used if the comparison is tested after every pair
    comparisons: int  # independent ones: tasks times the groups compared with another one


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Differences far from all others."""

    count: int
    pairs: int
    mean: float  # of the tail
    others: float  # mean of the other differences
    sd: float  # of the other differences; > 0

    @property
    def shares(self) -> tuple[float, float]:
        """The exact 95 % limits of the share of such differences."""
        return share_limits(self.count, self.pairs, _MISSED)

    def mean_at(self, share: float) -> float:
        """Return the mean of all differences if they had this share."""
        return self.others + share * (self.mean - self.others)

    @property
    def least_mean(self) -> float:
        """The mean of all differences if the share were at its upper limit."""
        return self.mean_at(self.shares[1])

    @property
    def depth(self) -> float:
        """The distance of the tail from the others, in their SDs."""
        return abs(self.others - self.mean) / self.sd


def far_tail(differences: Floats) -> Tail | None:
    """Return the lowest of `differences` [pairs] that lie further from the others than those lie from one another.

    None if there are none, if they are more than one in three, or if the others do not vary.
    """
    ordered_differences = np.sort(differences)
    pairs = int(ordered_differences.size)
    most_pairs = pairs // _RARE
    gaps = ordered_differences[1 : most_pairs + 1] - ordered_differences[:most_pairs]
    widths = ordered_differences[-1] - ordered_differences[1 : most_pairs + 1]
    for count in (np.flatnonzero(gaps > widths) + 1).tolist():
        tail = ordered_differences[:count]
        other_differences = ordered_differences[count:]
        sd = float(other_differences.std(ddof=1))
        if sd > 0.0:
            return Tail(
                count=count, pairs=pairs, mean=float(tail.mean()), others=float(other_differences.mean()), sd=sd
            )
    return None


def rate_of_tail(tail: Tail, plan: LookPlan) -> float:
    """Return the error rate of `plan` for a group that collapses as often and as deeply as the tail."""
    rates = _rates_of_plan(table.COLLAPSES, plan)  # [shares, depths]
    shares = np.log(table.SHARES)
    depths = np.log(table.DEPTHS)
    rates_at_share = _interpolate(shares, np.log(tail.count / tail.pairs), rates)
    return float(_interpolate(depths, np.log(tail.depth), rates_at_share)) / 100.0


def rate_of_skewness(differences: Floats, plan: LookPlan) -> float | None:
    """Return the error rate of `plan` for a law as skewed as `differences` [pairs], which are claimed to be above 0.

    None if they are no more skewed against the claim than most normal ones, or if their mean is larger, in SDs, than
    that of nearly all false claims.
    """
    grid = np.log(table.PAIRS)
    log_pairs = float(np.log(differences.size))
    usual_skewness = float(_interpolate(grid, log_pairs, np.array(table.USUAL)))
    largest_t = float(_interpolate(grid, log_pairs, np.array(table.LARGEST)))
    sd = float(differences.std(ddof=1))
    opposing_skewness = -(skewness(differences) or 0.0)
    if opposing_skewness <= usual_skewness or float(differences.mean()) > largest_t * sd:
        return None
    medians = _interpolate(grid, log_pairs, np.array(table.SAMPLE))  # [laws]
    rates = _rates_of_plan(table.SKEWED, plan)  # [laws]
    return float(np.interp(opposing_skewness, medians, rates)) / 100.0


def _rates_of_plan(rates: Sequence[object], plan: LookPlan) -> Floats:
    """Return the part of `rates` [plans, comparisons, ...] of a plan, in percent: [...]."""
    plans = np.array(rates, dtype=np.float64)
    size = len(table.PAIRS)
    grid = np.log(table.PAIRS)
    if plan.looks == "one look":
        rates_of_looks = _interpolate(grid, np.log(plan.first), plans[:size])
    elif plan.looks == "several looks":
        rates_of_looks = _interpolate(grid, np.log(plan.first), plans[size : 2 * size])
    else:
        rates_of_looks = plans[-1]
    return _interpolate(np.log(table.COMPARISONS), np.log(plan.comparisons), rates_of_looks)


def _interpolate(grid: Sequence[float] | Floats, value: float, rates: Floats) -> Floats:
    """Interpolate `rates` [grid, ...] at `value` on the ascending `grid`; beyond its ends, return those of the end."""
    points = np.asarray(grid, dtype=np.float64)
    clipped_value = float(np.clip(value, points[0], points[-1]))
    low = int(np.clip(np.searchsorted(points, clipped_value) - 1, 0, points.size - 2))
    weight = (clipped_value - points[low]) / (points[low + 1] - points[low])
    return np.asarray((1.0 - weight) * rates[low] + weight * rates[low + 1])
