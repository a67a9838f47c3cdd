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


def may_be_best(better_mask: Bools, upper_limits: Floats) -> tuple[Bools, Floats] | None:
    """Return which groups [k] may be the best, and how much worse than the best each is at most [k].

    `better_mask` [k, k]: the one-sided test at alpha / (k - 1) shows that group i is better than group j.
    `upper_limits` [k, k]: the upper limit of how much better i is than j, at the same level; inf if there is none.
    Returns None if every group loses to another, which is possible if pairs of groups are compared on different runs.

    If several groups share the best mean, each of them by itself is among the groups with confidence 1 - alpha.
    """
    best_mask = np.logical_not(better_mask.any(axis=0))
    if not best_mask.any():
        return None
    best_limits = np.where(best_mask[:, None], upper_limits, 0.0)
    np.fill_diagonal(best_limits, 0.0)
    return best_mask, np.maximum(best_limits.max(axis=0), 0.0)
