"""The difference of interquartile means, with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Iterator

from esper_ab.stats.bootstrap import IQMDifference, iqm_difference, with_level
from esper_ab.stats.statistic import Beside, Statistic
from esper_ab.stats.text import points


def _show(iqm: IQMDifference, _: Beside) -> str:
    return with_level(f"{points(iqm.mean)} points, {points(iqm.low)} to {points(iqm.high)}", iqm.honest)


def _caveats(iqm: IQMDifference, beside: Beside) -> Iterator[str]:
    if not iqm.honest:
        yield f"Bootstrap intervals are honest from about ten runs; here are {beside.pairs} per group."


STATISTIC = Statistic[IQMDifference](
    label="interquartile mean", kind="effect", place=3, compute=iqm_difference, show=_show, caveats=_caveats
)
