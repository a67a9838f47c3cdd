"""Runs of two groups that share nothing: Welch's t, with the degrees of freedom of Satterthwaite.

Welch (1947); Satterthwaite (1946). Groups may differ in spread and in number. What it needs of the outcomes is that
the means are nearly normal; where one group is small and skewed, they are not (docs/statistics.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from esper_ab.stats.adjusted_difference import AdjustedDifference
from esper_ab.stats.distributions import t_sf
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.pair import commonest, resolution


def welch(a: Sequence[float], b: Sequence[float]) -> AdjustedDifference | None:
    """Compare the means of a [n], b [m]; None where a group has no run.

    No test where neither group varies, and where more than half of all runs came to one and the same outcome and fewer
    than LEAST_PAIRS to another: a claim would rest on those few.
    """
    if not a or not b:
        return None
    none = AdjustedDifference(
        name="Welch's t", pairs=min(len(a), len(b)), mean=math.fsum(a) / len(a) - math.fsum(b) / len(b), sd=None,
        se=None, t=None, df=0, p=None, information=0.0, positions=(),
    )  # fmt: skip
    everything, within = [*a, *b], resolution(a, b)
    most, _ = commonest(everything, within)
    few = none.pairs < 2 or (2 * most > len(everything) and len(everything) - most < LEAST_PAIRS)
    if few or max(np.ptp(a), np.ptp(b)) <= within:
        return none
    parts = [float(np.var(side, ddof=1)) / len(side) for side in (a, b)]  # of the squared error of the difference
    t = none.mean / (se := math.sqrt(math.fsum(parts)))
    df = se**4 / math.fsum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    return msgspec.structs.replace(none, se=se, t=t, df=df, p=float(2.0 * t_sf(abs(t), df)))
