"""The Mann-Whitney U test on runs, which ignores the pairing: does one group rank above the other?

It must not be used on pooled episodes, because the episodes of one run are not independent
(docs/evidence/statistics.md).
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from esper_ab.stats.floats import floats
from esper_ab.stats.statistic import Beside, Statistic
from esper_ab.stats.text import p_text

_EXACT_RUNS = 100  # per group; at 500, the distribution of U takes minutes, and the normal one is close to it


class MannWhitney(msgspec.Struct, frozen=True, kw_only=True):
    """The U of the first sample and the two-sided p; `exact` is False for the normal approximation."""

    u: float
    p: float
    exact: bool


def mann_whitney(a: ArrayLike, b: ArrayLike) -> MannWhitney:
    """Test a [n runs] against b [m runs].

    Without ties and with at most 100 runs per group, p is exact. Otherwise it comes from the tie-corrected normal
    approximation. At 100 runs per group, the exact and the approximate p differ by less than 0.001.
    """
    x, y = floats(a), floats(b)
    both = np.concatenate((x, y))
    distinct = np.unique(both).size
    if distinct == 1:
        return MannWhitney(u=x.size * y.size / 2.0, p=1.0, exact=True)
    from scipy import stats  # slow to import, and only here

    exact = bool(distinct == both.size) and max(x.size, y.size) <= _EXACT_RUNS
    result = stats.mannwhitneyu(x, y, alternative="two-sided", method="exact" if exact else "asymptotic")
    return MannWhitney(u=float(result.statistic), p=float(result.pvalue), exact=exact)


def _show(test: MannWhitney, beside: Beside) -> str:
    why = f"more than {_EXACT_RUNS} runs a group" if beside.pairs > _EXACT_RUNS else "ties"
    kind = "exact" if test.exact else f"normal approximation, because of {why}"
    return f"U = {test.u:g}, p {p_text(test.p)} ({kind}; pairing unused)"


STATISTIC = Statistic[MannWhitney](
    label="Mann-Whitney U on runs", kind="test", place=2, compute=lambda a, b, _: mann_whitney(a, b), show=_show,
    of_unpaired=True,
)  # fmt: skip
