"""The interquartile mean of each group, with its bootstrap interval over the runs of one task.

With one task, the stratified bootstrap of rliable (Agarwal et al. 2021) resamples the runs of each group.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from esper_ab.stats.descriptive.iqm import influences, interquartile_means
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.resampling import HONEST_FROM, NORMAL_FROM, TAILS, Z, batches
from esper_ab.stats.statistic import ComparisonContext, Statistic

RESAMPLES = 2_000  # fewer if one of the groups has more than 100,000 runs


class GroupIQMs(msgspec.Struct, frozen=True, kw_only=True):
    """The interquartile mean of each group, with its 95 % percentile bootstrap interval."""

    a: float
    low_a: float
    high_a: float
    b: float
    low_b: float
    high_b: float
    honest: bool  # True with enough runs for both intervals


def iqm_groups(a: ArrayLike, b: ArrayLike, rng: Generator) -> GroupIQMs:
    """Compute the interquartile means of a [n] and b [m]; n, m > 0.

    Both groups use the same random numbers, so that exchanging them exchanges their limits, and no more.
    """
    x = np.sort(floats(a))  # sorted, so that no limit depends on the order of rows
    y = np.sort(floats(b))
    larger_size = max(x.size, y.size)
    if min(x.size, y.size) >= NORMAL_FROM:
        return _normal(x, y)
    resampled_a = []
    resampled_b = []
    for count in batches(RESAMPLES, larger_size):
        shares = rng.random((count, larger_size))
        resampled_a.append(interquartile_means(x[_places(shares, x.size)]))
        resampled_b.append(interquartile_means(y[_places(shares, y.size)]))
    low_a, high_a = np.quantile(np.concatenate(resampled_a), TAILS)
    low_b, high_b = np.quantile(np.concatenate(resampled_b), TAILS)
    return GroupIQMs(
        a=float(interquartile_means(x)),
        low_a=float(low_a),
        high_a=float(high_a),
        b=float(interquartile_means(y)),
        low_b=float(low_b),
        high_b=float(high_b),
        honest=min(x.size, y.size) >= HONEST_FROM,
    )


def _normal(x: Floats, y: Floats) -> GroupIQMs:
    """Return the interquartile means with the normal interval, which the bootstrap's approaches."""
    mean_x, mean_y = (float(interquartile_means(runs)) for runs in (x, y))
    reach_x, reach_y = (Z * float(np.std(influences(runs), ddof=1)) / math.sqrt(runs.size) for runs in (x, y))
    return GroupIQMs(
        a=mean_x,
        low_a=mean_x - reach_x,
        high_a=mean_x + reach_x,
        b=mean_y,
        low_b=mean_y - reach_y,
        high_b=mean_y + reach_y,
        honest=True,
    )


def _places(shares: Floats, n: int) -> NDArray[np.int64]:
    """Return places in 0 ... n - 1 [resamples, n], from numbers in [0, 1) [resamples, >= n]."""
    return np.asarray(shares[:, :n] * n, dtype=np.int64)


def _show(result: GroupIQMs, context: ComparisonContext) -> str:
    text_a = _mean_and_limits(context.a, result.a, result.low_a, result.high_a, context.digits)
    text_b = _mean_and_limits(context.b, result.b, result.low_b, result.high_b, context.digits)
    level = "95 %" if result.honest else "nominally 95 %, less with fewer than ten runs"
    return f"{text_a}, {text_b} ({level})"


def _mean_and_limits(group: str, mean: float, low: float, high: float, digits: int) -> str:
    return f"{group} {mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


STATISTIC = Statistic[GroupIQMs](
    label="IQM of each group",
    kind="effect",
    place=4,
    compute=iqm_groups,
    show=_show,
    of_unpaired=True,
    of_binary=False,
)
