"""The permutation test of the difference of means of unpaired runs.

Under the null hypothesis every assignment of the runs to two groups of these sizes is equally likely (Fisher 1935;
Pitman 1937). p is the share of assignments whose |difference of means| is at least as large as the observed one. For
pairs, the sign-flip test takes its place.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from esper_ab.stats.floats import Floats, floats
from esper_ab.stats.statistic import ComparisonContext, Statistic
from esper_ab.stats.text import p_text

_ENUMERATED = 200_000  # assignments; those of 10 and 10 runs are 184,756
_DRAWN = 9_999  # assignments that are drawn if there are more
_MOST_RUNS = 1_000  # of both groups; with more, the draws would take seconds
_TIE_TOLERANCE = 1e-12  # relative to the sum of |outcomes|: sums that differ by the order of addition count as ties


class Permutation(msgspec.Struct, frozen=True, kw_only=True):
    """The two-sided p over the assignments of runs to groups."""

    p: float
    exact: bool  # all assignments are enumerated; False: 9,999 are drawn, and the observed one counts as one more
    assignments: int  # enumerated, or drawn


def permutation(a: ArrayLike, b: ArrayLike, rng: Generator) -> Permutation | None:
    """Test a [n] against b [m], n, m > 0; None for more than 1,000 runs."""
    x = floats(a)
    y = floats(b)
    if x.size + y.size > _MOST_RUNS:
        return None
    smaller_group = x if x.size <= y.size else y
    outcomes = np.concatenate((x, y))
    mean = outcomes.mean()
    runs = np.sort(outcomes - mean)  # sorted, so that no drawn p depends on the order of rows
    observed_sum = abs(float(np.sum(smaller_group) - smaller_group.size * mean))
    least_sum = observed_sum - _TIE_TOLERANCE * float(np.sum(np.abs(x)) + np.sum(np.abs(y)))
    if math.comb(runs.size, smaller_group.size) <= _ENUMERATED:
        sums = _sums(runs, smaller_group.size)
        p = float(np.mean(np.abs(sums) >= least_sum))
        return Permutation(p=p, exact=True, assignments=int(sums.size))
    shuffled_runs = rng.permuted(np.tile(runs, (_DRAWN, 1)), axis=1)
    sums = shuffled_runs[:, : smaller_group.size].sum(axis=1)
    counts_above = int(np.sum(np.abs(sums) >= least_sum))
    return Permutation(p=(counts_above + 1) / (_DRAWN + 1), exact=False, assignments=_DRAWN)


def _sums(runs: Floats, size: int) -> Floats:
    """Return the sums of all subsets of `runs` [n] with `size` elements."""
    sums = [np.zeros(1)] + [np.zeros(0)] * size  # by the number of elements
    for run in runs:
        for n_chosen in range(size, 0, -1):
            sums[n_chosen] = np.concatenate((sums[n_chosen], sums[n_chosen - 1] + run))
    return sums[size]


def _show(result: Permutation, _: ComparisonContext) -> str:
    if result.exact:
        kind = f"exact, {result.assignments} assignments"
    else:
        kind = f"{result.assignments} drawn assignments"
    return f"p {p_text(result.p)} ({kind})"


STATISTIC = Statistic[Permutation](
    label="permutation of runs",
    kind="test",
    place=5,
    compute=permutation,
    show=_show,
    of_paired=False,
    of_unpaired=True,
    of_binary=False,
)
