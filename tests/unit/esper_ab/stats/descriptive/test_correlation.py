"""The correlation of pairs and the worth of pairing, against scipy and simulation."""

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given
from scipy import stats
from support.outcomes.paired_outcomes import columns, paired, varied

from esper_ab.stats.descriptive.correlation import STATISTIC, pair_correlation


@given(paired)
def test_pair_correlation_equals_scipy(rows):
    a, b = columns(rows)
    assume(len(rows) >= 4 and varied(a) and varied(b))
    expected = stats.pearsonr(a, b)
    result = pair_correlation(a, b)
    assert result.r == pytest.approx(expected.statistic, abs=1e-9)
    assume(abs(result.r) < 0.999999)
    interval = expected.confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    independent_variance = np.var(a, ddof=1) + np.var(b, ddof=1)
    assert result.worth == pytest.approx(independent_variance / np.var(np.subtract(a, b), ddof=1), rel=1e-9)
    assert result == pair_correlation(b, a)


def test_the_correlation_of_constant_or_too_few_pairs_is_undefined():
    assert pair_correlation([1.0, 2.0], [2.0, 3.0]) is None
    assert pair_correlation([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]) is None
    three_pairs = pair_correlation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    assert three_pairs.low is three_pairs.high is None
    collinear_correlation = pair_correlation([1.0, 2.0, 4.0, 5.0], [2.0, 3.0, 5.0, 6.0])
    assert (collinear_correlation.r, collinear_correlation.low, collinear_correlation.worth) == (1.0, None, None)


@pytest.mark.parametrize(("pair_worth", "text"), [(0.98, "0.98"), (12.3, "12"), (8e19, "over 1000")])
def test_the_information_in_a_pair_is_shown_with_two_digits(pair_worth, text):
    correlation = msgspec.structs.replace(pair_correlation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0]), worth=pair_worth)
    assert STATISTIC.show(correlation, None).endswith(f"; a pair is worth {text} unpaired ones")
