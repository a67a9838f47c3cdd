"""The bootstrap interval of the probability of improvement."""

from __future__ import annotations

from esper_ab.stats.bootstrap import ImprovementInterval, improvement_interval, with_level
from esper_ab.stats.statistic import Statistic

STATISTIC = Statistic[ImprovementInterval](
    label="P(improvement), bootstrap", kind="effect", place=2, compute=improvement_interval,
    show=lambda found, _: with_level(f"{found.low:.2f} to {found.high:.2f}", found.honest),
)  # fmt: skip
