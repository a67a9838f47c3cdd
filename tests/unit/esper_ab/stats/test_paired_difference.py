"""Mean of the paired differences with Student's t: the main estimate and its interval."""

import pytest
from hypothesis import assume, given
from scipy import stats
from support.outcomes.paired_outcomes import columns, paired

from esper_ab.stats.paired_difference import paired_difference


@given(paired)
def test_paired_difference_equals_scipy(rows):
    a, b = columns(rows)
    result = paired_difference(a, b)
    assume(not result.degenerate)
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert result.t == pytest.approx(expected.statistic, rel=1e-12, abs=1e-12)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-11, abs=1e-12)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), rel=1e-12, abs=1e-12)
    assert result.df == len(rows) - 1


@pytest.mark.parametrize(
    ("a", "b", "mean", "sd", "is_degenerate"),
    [
        ([70.1, 71.1, 72.1], [68.1, 69.1, 70.1], 2.0, 0.0, True),
        ([71.0], [70.0], 1.0, None, False),
    ],
)
def test_constant_differences_and_single_pairs_have_no_t(a, b, mean, sd, is_degenerate):
    result = paired_difference(a, b)
    assert (result.mean, result.sd, result.degenerate) == (pytest.approx(mean), sd, is_degenerate)
    assert (result.t, result.p, result.low, result.high) == (None, None, None, None)
