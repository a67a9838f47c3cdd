"""Hedges' g, the standardised difference."""

from __future__ import annotations

from esper_ab.stats.hedges_g import hedges_g
from esper_ab.stats.statistic import Statistic

STATISTIC = Statistic[float](
    label="Hedges' g", kind="effect", place=4, compute=lambda a, b, _: hedges_g(a, b),
    show=lambda g, _: f"{g:+.2f} standard deviations of runs",
)  # fmt: skip
