"""Welch's t against scipy, its error rate for unequal groups, and samples without a test."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.welch import welch

runs = st.lists(st.integers(-999, 999).map(lambda value: value / 10.0), min_size=2, max_size=30)


@pytest.mark.filterwarnings("ignore:Precision loss")
@settings(deadline=None)
@given(runs, runs, st.floats(1e-5, 0.5))
def test_welchs_t_agrees_with_scipy(a, b, p):
    result = welch(a, b)
    assume(result.t is not None)
    expected, pooled_test = (stats.ttest_ind(a, b, equal_var=equal_variances) for equal_variances in (False, True))
    smaller_sample, larger_sample = sorted((a, b), key=len)
    skewed = any(len(set(side)) > 1 and abs(stats.skew(side)) > 0.5 for side in (a, b))
    least_t = (
        result.mean / np.std(larger_sample, ddof=1) / np.sqrt(4 / 9 / len(smaller_sample) + 1 / len(larger_sample))
        if np.std(larger_sample)
        else np.inf
    )
    floor = pooled_test.statistic if skewed or len(a) == len(b) else max(pooled_test.statistic, least_t, key=abs)
    t = min(expected.statistic, floor, key=abs)
    assert (result.t, result.df) == pytest.approx((t, expected.df), rel=1e-8)
    assert result.p == pytest.approx(2.0 * stats.t.sf(abs(t), expected.df), rel=1e-8)
    if t == expected.statistic:
        assert result.interval(p) == pytest.approx(tuple(expected.confidence_interval(1.0 - p)), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("runs", [(6, 40), (10, 40), (10, 200), (20, 100)])
def test_groups_of_unequal_size_with_equal_collapses_rarely_differ(runs):
    """If none of the few happens to collapse, they seem to vary little; Welch's t alone errs in up to 36 %."""
    rng = np.random.default_rng(5)
    for law in (
        lambda n: rng.normal(50.0, 1.0, n) - 20.0 * (rng.random(n) < 0.05),
        lambda n: rng.normal(50.0, 1.0, n) - 20.0 * (rng.random(n) < 0.15),
        lambda n: rng.lognormal(size=n),
    ):
        p_values = [welch(*(law(n).tolist() for n in runs)).p for _ in range(400)]
        assert sum(p is not None and p <= 0.05 for p in p_values) <= 20


@pytest.mark.parametrize("runs", [(6, 40), (10, 40), (10, 200), (20, 100)])
def test_collapses_in_the_smaller_group_rarely_cause_a_claim(runs):
    """Only the few can collapse; their law has the mean and SD of the many. Welch's t alone errs in up to 35 %."""
    rng = np.random.default_rng(7)
    for rate, depth in ((0.05, 20.0), (0.15, 6.0), (0.04, 10.0)):
        sd = np.sqrt(1.0 + rate * (1.0 - rate) * depth**2)
        p_values = []
        for _ in range(400):
            smaller_sample = rng.normal(rate * depth, 1.0, runs[0]) - depth * (rng.random(runs[0]) < rate)
            p_values.append(welch(smaller_sample.tolist(), rng.normal(0.0, sd, runs[1]).tolist()).p)
        assert sum(p <= 0.05 for p in p_values) <= 28  # 7 %


@pytest.mark.parametrize(
    ("runs", "sd", "least_claims"), [((10, 100), 1.5, 215), ((10, 100), 2.0, 120), ((6, 40), 1.5, 94)]
)
def test_a_larger_group_with_more_spread_keeps_part_of_the_power(runs, sd, least_claims):
    """Normal runs, one SD of the smaller group apart: 61, 40 and 29 %; with a common spread 46, 19 and 19 %."""
    rng = np.random.default_rng(6)
    p_values = [
        welch(rng.normal(1.0, 1.0, runs[0]).tolist(), rng.normal(0.0, sd, runs[1]).tolist()).p for _ in range(400)
    ]
    assert sum(p <= 0.05 for p in p_values) > least_claims


def test_welchs_standard_error_is_used_for_groups_of_equal_size():
    smaller_sample = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95]
    larger_sample = [10.0, -3.0, 4.0, 22.0, 7.0, -60.0]
    assert welch(smaller_sample, larger_sample).t == pytest.approx(
        stats.ttest_ind(smaller_sample, larger_sample, equal_var=False).statistic
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([70.0] * 8, [72.0] * 9),  # neither varies
        ([100.0] * 9 + [60.0], [100.0] * 9 + [61.0]),  # one run of each group varies
        ([70.0], [72.0, 71.0, 73.0]),  # one run has no spread
    ],
)
def test_samples_without_spread_have_no_welch_test(a, b):
    result = welch(a, b)
    assert (result.t, result.p, result.interval(0.05), result.degenerate) == (None, None, None, True)
    assert welch([], b) is None


def test_welchs_test_accepts_one_constant_group():
    result = welch([70.0] * 8, [72.0, 71.5, 73.0, 70.5, 72.5, 71.0, 74.0])
    assert (result.df, result.mean) == (pytest.approx(6.0), pytest.approx(70.0 - 504.5 / 7))
