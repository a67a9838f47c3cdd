"""The correlation within pairs: what the common randomness is worth."""

from __future__ import annotations

from esper_ab.stats.pair_correlation import PairCorrelation, pair_correlation
from esper_ab.stats.statistic import Beside, Statistic


def _show(found: PairCorrelation, _: Beside) -> str:
    limits = worth = ""
    if found.low is not None and found.high is not None:
        limits = f", 95 % interval {found.low:+.2f} to {found.high:+.2f}"
    if found.worth is not None:
        times = f"{found.worth:.0f}" if found.worth >= 10 else f"{found.worth:.2g}"
        worth = f"; a pair is worth {times} unpaired ones"
    return f"{found.r:+.2f}{limits}{worth}"


STATISTIC = Statistic[PairCorrelation](
    label="correlation in pairs", kind="effect", place=5, compute=lambda a, b, _: pair_correlation(a, b), show=_show
)
