"""The difference of interquartile means, with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from esper_ab.stats.bootstrap import HONEST_FROM, RESAMPLES, limits, several, with_level
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.statistic import Beside, Statistic
from esper_ab.stats.text import signed


class IQMDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Interquartile mean of a minus that of b, with its 95 % percentile bootstrap interval."""

    mean: float
    low: float
    high: float
    honest: bool  # True with enough runs for the interval


def interquartile_mean(runs: ArrayLike) -> float:
    """Return the mean of the runs [n] without int(n / 4) of them at each end, as rliable does for a single task."""
    return float(interquartile_means(floats(runs)))


def iqm_difference(a: ArrayLike, b: ArrayLike, rng: Generator) -> IQMDifference:
    """Compute the difference of interquartile means of a, b [pairs]; at least 2 pairs."""
    n = several(a, b)
    x, y = floats(a), floats(b)
    drawn = rng.integers(0, n, (RESAMPLES, n))
    low, high = limits(interquartile_means(x[drawn]) - interquartile_means(y[drawn]))
    mean = interquartile_mean(x) - interquartile_mean(y)
    return IQMDifference(mean=mean, low=low, high=high, honest=n >= HONEST_FROM)


def interquartile_means(runs: Floats) -> Floats:
    """Return the mean of the middle half of runs [..., n]; n // 4 are left out at either end."""
    n = runs.shape[-1]
    cut = n // 4
    return np.asarray(np.sort(runs, axis=-1)[..., cut : n - cut].mean(axis=-1))


def _show(iqm: IQMDifference, beside: Beside) -> str:
    limits = f"{signed(iqm.low, beside.digits)} to {signed(iqm.high, beside.digits)}"
    return with_level(f"{beside.difference(iqm.mean)}, {limits}", iqm.honest)


def _caveats(iqm: IQMDifference, beside: Beside) -> Iterator[str]:
    if not iqm.honest:
        yield f"Bootstrap intervals are honest from about ten runs; here are {beside.pairs} per group."


STATISTIC = Statistic[IQMDifference](
    label="interquartile mean", kind="effect", place=3, compute=iqm_difference, show=_show, caveats=_caveats,
    of_binary=False,
)  # fmt: skip
