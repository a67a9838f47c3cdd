"""The signed-rank test against scipy and plain enumeration, and the Hodges-Lehmann estimate by its definition."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from support.outcomes.paired_outcomes import columns, paired

from esper_ab.stats.descriptive.signed_rank import signed_rank

coarse = st.lists(st.tuples(st.integers(0, 4).map(float), st.integers(0, 4).map(float)), min_size=1, max_size=8)


@settings(deadline=None)
@given(paired)
def test_the_signed_rank_test_equals_scipy_without_ties(rows):
    a, b = columns(rows)
    sizes = np.sort(np.abs(np.subtract(a, b)))
    assume(sizes[0] > 1e-6 and (np.diff(sizes) > 1e-6).all())
    expected = stats.wilcoxon(a, b, method="exact")
    result = signed_rank(a, b)
    assert (result.w, result.p) == (expected.statistic, pytest.approx(expected.pvalue, rel=1e-12))
    assert result.exact


@given(coarse)
def test_the_signed_rank_p_equals_plain_enumeration_with_ties(rows):
    a, b = columns(rows)
    d = np.subtract(a, b)
    nonzero_differences = d[d != 0.0]
    ranks = stats.rankdata(np.abs(nonzero_differences))
    w = min(ranks[nonzero_differences > 0.0].sum(), ranks[nonzero_differences < 0.0].sum())
    sums = [ranks[np.array(signs, dtype=bool)].sum() for signs in product((0, 1), repeat=nonzero_differences.size)]
    result = signed_rank(a, b)
    assert (result.w, result.pairs, result.exact) == (w, nonzero_differences.size, True)
    assert result.p == pytest.approx(min(1.0, 2.0 * np.mean(np.array(sums) <= w)), rel=1e-12)


@pytest.mark.parametrize("decimals", [1, 12])
def test_the_signed_rank_p_of_many_pairs_equals_scipys_normal_approximation(decimals):
    a, b = np.round(np.add(np.random.default_rng(4).normal(0.0, 1.0, (2, 150)), [[0.2], [0.0]]), decimals)
    rounded_differences = np.round(a - b, 9)
    result = signed_rank(a, b)
    expected = stats.wilcoxon(rounded_differences[rounded_differences != 0.0], method="asymptotic")
    assert not result.exact
    assert (result.w, result.p) == (expected.statistic, pytest.approx(expected.pvalue, rel=1e-9))


def test_differences_equal_up_to_rounding_are_ties():
    result = signed_rank([0.3, 0.3, 0.7, 0.9], [0.1, 0.5, 0.5, 0.7])
    assert (result.w, result.pairs) == (2.5, 4)


@given(paired)
def test_the_hodges_lehmann_estimate_is_the_median_of_walsh_averages(rows):
    a, b = columns(rows)
    d = np.subtract(a, b)
    averages = [(d[i] + d[j]) / 2.0 for i in range(d.size) for j in range(i, d.size)]
    assert signed_rank(a, b).estimate == pytest.approx(np.median(averages), abs=1e-12)


def test_more_than_two_thousand_pairs_have_no_hodges_lehmann_estimate():
    a, b = np.random.default_rng(5).normal(0.0, 1.0, (2, 2_001))
    assert signed_rank(a, b).estimate is None
    assert signed_rank(a[1:], b[1:]).estimate is not None
