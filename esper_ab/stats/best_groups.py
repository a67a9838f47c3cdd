"""The groups that may be the best: multiple comparisons with the best, from one-sided limits of pairwise differences.

Edwards & Hsu (1983), "Multiple comparisons with the best treatment"; Hsu (1996), "Multiple Comparisons", chapter 4.
Compared with each other group by a one-sided test at alpha / (groups - 1), the best group loses any of these tests with
probability alpha at most (Bonferroni). So the groups that lose none contain the best with confidence 1 - alpha, and the
same event limits how far each group lies behind the best. Each pair has its own standard error: groups may differ in
spread, and a seed may be a block. A pooled standard error resolves smaller differences but fails if one group varies
more than others (docs/evidence/many-groups.md).
"""

from __future__ import annotations

import numpy as np

from esper_ab.stats.floats import Bools, Floats


def may_be_best(better: Bools, most: Floats) -> tuple[Bools, Floats] | None:
    """Return which groups [k] may be the best, and how much worse than the best each is at most [k].

    `better` [k, k]: the one-sided test at alpha / (k - 1) shows that group i is better than group j. `most` [k, k]: the
    upper limit of how much better i is than j, at the same level; inf if there is none. Returns None if every group
    loses to another, which is possible if pairs of groups are compared on different runs.

    If several groups share the best mean, each of them by itself is among the groups with confidence 1 - alpha.
    """
    among = np.logical_not(better.any(axis=0))
    if not among.any():
        return None
    from_best = np.where(among[:, None], most, 0.0)
    np.fill_diagonal(from_best, 0.0)
    return among, np.maximum(from_best.max(axis=0), 0.0)
