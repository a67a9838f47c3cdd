"""Simultaneous intervals for the means of several groups of few runs.

The half-width of a group's interval is the larger of two: that of the pooled standard deviation at alpha / k for k
groups (Bonferroni), and that of the group's own standard deviation at alpha / 2. The first holds for all groups at once
if they vary alike; the second protects a group that varies more than the others, for which the pooled one fails in up
to half of all experiments. Student's t from each group's own standard deviation at alpha / k would be four times as
wide with three runs each, and fail more often between skewed groups (Student 1908; Dunn 1961; simulated in
docs/evidence/many-groups.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

from esper_ab.stats.distributions import t_isf
from esper_ab.stats.floats import floats

Interval = tuple[float, float]


def mean_intervals(groups: Sequence[Sequence[float]], alpha: float) -> list[Interval] | None:
    """Return an interval for the mean of each group, which hold together with confidence 1 - alpha.

    `groups`: the outcomes of each group's runs, at least one per group. None if the pooled standard deviation is 0 or
    unknown, because no group has two runs.
    """
    squares = [float(((floats(outcomes) - fmean(outcomes)) ** 2).sum()) for outcomes in groups]
    pooled_df = sum(len(outcomes) - 1 for outcomes in groups)
    if not pooled_df or not math.fsum(squares):
        return None
    pooled_half_width = math.sqrt(math.fsum(squares) / pooled_df) * float(t_isf(alpha / len(groups) / 2.0, pooled_df))
    intervals = []
    for outcomes, square in zip(groups, squares, strict=True):
        half_width = pooled_half_width
        df = len(outcomes) - 1
        if df:
            half_width = max(pooled_half_width, math.sqrt(square / df) * float(t_isf(alpha / 4.0, df)))
        half_width /= math.sqrt(len(outcomes))
        mean = fmean(outcomes)
        intervals.append((mean - half_width, mean + half_width))
    return intervals
