"""The Mann-Whitney U test on runs, which ignores the pairing."""

from __future__ import annotations

from esper_ab.stats.mann_whitney import MannWhitney, mann_whitney
from esper_ab.stats.statistic import Beside, Statistic
from esper_ab.stats.text import p_text


def _show(test: MannWhitney, _: Beside) -> str:
    kind = "exact" if test.exact else "normal approximation, because of ties"
    return f"U = {test.u:g}, p {p_text(test.p)} ({kind}; pairing unused)"


STATISTIC = Statistic[MannWhitney](
    label="Mann-Whitney U on runs", kind="test", place=2, compute=lambda a, b, _: mann_whitney(a, b), show=_show
)
