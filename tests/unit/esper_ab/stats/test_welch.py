"""Welch's t against scipy's, and where there is none."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.welch import welch

runs = st.lists(st.integers(-999, 999).map(lambda value: value / 10.0), min_size=2, max_size=30)


@pytest.mark.filterwarnings("ignore:Precision loss")
@settings(deadline=None)
@given(runs, runs, st.floats(1e-5, 0.5))
def test_agrees_with_scipy(a, b, p):
    found = welch(a, b)
    assume(found.t is not None)
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert (found.t, found.df, found.p) == pytest.approx((expected.statistic, expected.df, expected.pvalue), rel=1e-8)
    assert found.interval(p) == pytest.approx(tuple(expected.confidence_interval(1.0 - p)), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([70.0] * 8, [72.0] * 9),  # neither varies
        ([100.0] * 9 + [60.0], [100.0] * 9 + [61.0]),  # all rests on two
        ([70.0], [72.0, 71.0, 73.0]),  # one run has no spread
    ],
)
def test_no_test_of_what_is_no_sample(a, b):
    found = welch(a, b)
    assert (found.t, found.p, found.interval(0.05), found.degenerate) == (None, None, None, True)


def test_one_group_may_be_constant():
    found = welch([70.0] * 8, [72.0, 71.5, 73.0, 70.5, 72.5, 71.0, 74.0])
    assert (found.df, found.mean) == (pytest.approx(6.0), pytest.approx(70.0 - 504.5 / 7))


def test_no_run_of_a_group_gives_no_difference():
    assert welch([], [70.0, 71.0]) is None
