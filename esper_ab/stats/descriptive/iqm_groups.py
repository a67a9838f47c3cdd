"""The interquartile mean of each group, with its bootstrap interval over the runs of one task.

With one task, the stratified bootstrap of rliable (Agarwal et al. 2021) resamples the runs of each group.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from esper_ab.stats.descriptive.iqm import interquartile_means
from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.resampling import HONEST_FROM, TAILS, batches
from esper_ab.stats.statistic import Beside, Statistic

RESAMPLES = 2_000  # fewer with more than 100,000 runs


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
    sides = [np.sort(floats(side)) for side in (a, b)]  # sorted, so that no limit depends on the order of rows
    most = max(side.size for side in sides)
    resampled: list[list[Floats]] = []
    for count in batches(RESAMPLES, most):
        shares = rng.random((count, most))
        resampled.append([interquartile_means(side[_places(shares, side.size)]) for side in sides])
    (low_a, high_a), (low_b, high_b) = (
        np.quantile(np.concatenate(means), TAILS) for means in zip(*resampled, strict=True)
    )
    of_a, of_b = (float(interquartile_means(side)) for side in sides)
    return GroupIQMs(
        a=of_a,
        low_a=float(low_a),
        high_a=float(high_a),
        b=of_b,
        low_b=float(low_b),
        high_b=float(high_b),
        honest=min(side.size for side in sides) >= HONEST_FROM,
    )


def _places(shares: Floats, n: int) -> NDArray[np.int64]:
    """Return places in 0 ... n - 1 [resamples, n], from numbers in [0, 1) [resamples, >= n]."""
    return np.asarray(shares[:, :n] * n, dtype=np.int64)


def _show(found: GroupIQMs, beside: Beside) -> str:
    of_a = _with_limits(beside.a, (found.a, found.low_a, found.high_a), beside.digits)
    of_b = _with_limits(beside.b, (found.b, found.low_b, found.high_b), beside.digits)
    level = "95 %" if found.honest else "nominally 95 %, less with fewer than ten runs"
    return f"{of_a}, {of_b} ({level})"


def _with_limits(group: str, numbers: tuple[float, float, float], digits: int) -> str:
    mean, low, high = (f"{number:.{digits}f}" for number in numbers)
    return f"{group} {mean} ({low} to {high})"


STATISTIC = Statistic[GroupIQMs](
    label="IQM of each group",
    kind="effect",
    place=4,
    compute=iqm_groups,
    show=_show,
    of_unpaired=True,
    of_binary=False,
)
