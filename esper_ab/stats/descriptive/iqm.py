"""The difference of interquartile means, with its bootstrap interval or, among very many runs, the normal one."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.paired_difference import differences
from esper_ab.stats.resampling import HONEST_FROM, NORMAL_FROM, TAILS, Z, batches
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import signed

RESAMPLES = 10_000  # resampling pairs preserves the correlation within them


class IQMDifference(msgspec.Struct, frozen=True, kw_only=True):
    """The interquartile mean of a minus that of b, with the 95 % percentile bootstrap interval of the difference."""

    mean: float
    low: float
    high: float
    honest: bool  # True with enough runs for the interval


def iqm_difference(a: ArrayLike, b: ArrayLike, rng: Generator) -> IQMDifference:
    """Compute the difference of interquartile means of a, b [pairs]; ValueError for fewer than two pairs."""
    n = int(differences(a, b).size)
    if n < 2:
        raise ValueError("a bootstrap needs at least two pairs")
    x = floats(a)
    y = floats(b)
    mean = float(interquartile_means(x) - interquartile_means(y))
    if n >= NORMAL_FROM:
        reach = Z * float(np.std(influences(x) - influences(y), ddof=1)) / math.sqrt(n)
        return IQMDifference(mean=mean, low=mean - reach, high=mean + reach, honest=True)
    resampled_differences = []
    for count in batches(RESAMPLES, n):
        drawn_indices = rng.integers(0, n, (count, n))
        resampled_differences.append(interquartile_means(x[drawn_indices]) - interquartile_means(y[drawn_indices]))
    low, high = np.quantile(np.concatenate(resampled_differences), TAILS)
    return IQMDifference(mean=mean, low=float(low), high=float(high), honest=n >= HONEST_FROM)


def interquartile_means(runs: Floats) -> Floats:
    """Return the mean of the middle half of runs [..., n]; as in rliable, n // 4 runs are dropped at either end."""
    n = runs.shape[-1]
    cut_count = n // 4
    return np.asarray(np.sort(runs, axis=-1)[..., cut_count : n - cut_count].mean(axis=-1))


def influences(runs: Floats) -> Floats:
    """Return how much each of the runs [n] moves the interquartile mean, times n; their SD gives its standard error."""
    n = runs.size
    cut_count = n // 4
    low, high = np.partition(runs, (cut_count, n - cut_count - 1))[[cut_count, n - cut_count - 1]]
    return np.asarray(np.clip(runs, low, high) * (n / (n - 2 * cut_count)))


def _show(iqm: IQMDifference, context: ComparisonContext) -> str:
    limits = f"{signed(iqm.low, context.digits)} to {signed(iqm.high, context.digits)}"
    level = "95 %" if iqm.honest else "nominally 95 %, less with fewer than ten runs"
    return f"{context.difference(iqm.mean)}, {limits} ({level})"


def _caveats(iqm: IQMDifference, context: ComparisonContext) -> Iterator[str]:
    if not iqm.honest:
        yield f"Bootstrap intervals need about ten runs per group; here there are {context.pairs}."


STATISTIC = Statistic[IQMDifference](
    label="interquartile mean",
    kind="effect",
    place=3,
    compute=iqm_difference,
    show=_show,
    caveats=_caveats,
    of_binary=False,
)
