"""Trend and autocorrelation of differences: against scipy and Moran's moments."""

import msgspec
import numpy as np
import pytest
from scipy import stats
from support.outcomes.look_designs import pairs_from

from esper_ab.stats.drift import drift


def test_the_slope_of_drifting_differences_equals_linear_regression():
    d = np.random.default_rng(1).standard_normal(12) + 0.2 * np.arange(12)
    result = drift(pairs_from(d), 1)
    regression = stats.linregress(np.arange(12), d)
    assert (result.slope, result.slope_p) == (pytest.approx(regression.slope), pytest.approx(regression.pvalue))
    residuals = d - d.mean()
    lag = (residuals[1:] @ residuals[:-1]) / (residuals @ residuals)
    z = (lag + 1 / 12) / (10 / (12 * 11**0.5))  # Moran 1948: mean -1/n, variance (n-2)^2 / (n^2 (n-1))
    assert (result.autocorrelation, result.autocorrelation_p) == pytest.approx((lag, stats.norm.sf(z)))
    plain_drift, drift_with_effect = (
        msgspec.structs.astuple(drift(pairs_from(x), 2)) for x in (d, d + np.array([5.0, -5.0] * 6))
    )
    assert drift_with_effect == pytest.approx(plain_drift)  # a position effect is not drift
    shuffled_pairs = np.random.default_rng(2).permutation(d.size)
    assert drift(pairs_from(d).taken(shuffled_pairs), 1) == result


@pytest.mark.parametrize("d", [np.arange(5.0), np.full(10, 3.0), np.zeros(8), [0.0] * 9 + [1.0]])
def test_too_few_or_degenerate_differences_show_no_drift(d):
    assert drift(pairs_from(d), 2) is None
