"""The bootstrap interval of the probability of improvement."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.bootstrap import HONEST_FROM, RESAMPLES, limits, several, with_level
from esper_ab.stats.statistic import Statistic


class ImprovementInterval(msgspec.Struct, frozen=True, kw_only=True):
    """P(a run of a > a run of b) + P(equal) / 2, with its 95 % percentile bootstrap interval."""

    a12: float
    low: float
    high: float
    honest: bool  # True with enough runs for the interval


def improvement_interval(a: ArrayLike, b: ArrayLike, rng: np.random.Generator) -> ImprovementInterval:
    """Compute the probability of improvement of a over b [pairs], with its interval; at least 2 pairs."""
    n = several(a, b)
    across = np.subtract.outer(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    wins = (across > 0) + 0.5 * (across == 0)  # [n runs of a, n runs of b]
    counts = rng.multinomial(n, np.full(n, 1.0 / n), RESAMPLES).astype(np.float64)  # draws of each pair
    low, high = limits(np.sum((counts @ wins) * counts, axis=1) / n**2)
    return ImprovementInterval(a12=float(np.mean(wins)), low=low, high=high, honest=n >= HONEST_FROM)


STATISTIC = Statistic[ImprovementInterval](
    label="P(improvement), bootstrap", kind="effect", place=2, compute=improvement_interval,
    show=lambda found, _: with_level(f"{found.low:.2f} to {found.high:.2f}", found.honest),
)  # fmt: skip
