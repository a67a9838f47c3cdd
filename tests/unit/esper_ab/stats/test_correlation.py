"""Trend and autocorrelation of differences; how often they are found: tests/statistics/test_simulated_rates.py."""

import msgspec
import numpy as np
import pytest
from scipy import stats

from esper_ab.stats.correlation import drift
from esper_ab.stats.pair import Pair


def made(d):
    return [
        Pair(replicate=r, a=70.0 + x, b=70.0, position_a=r % 2, position_b=1 - r % 2) for r, x in enumerate(d)
    ]


def test_without_positions_the_slope_is_that_of_linear_regression():
    d = np.random.default_rng(1).standard_normal(12) + 0.2 * np.arange(12)
    found, known = drift(made(d), 1), stats.linregress(np.arange(12), d)
    assert (found.slope, found.slope_p) == (pytest.approx(known.slope), pytest.approx(known.pvalue))
    plain, added = (msgspec.structs.astuple(drift(made(x), 2)) for x in (d, d + np.array([5.0, -5.0] * 6)))
    assert added == pytest.approx(plain)  # what a position adds is no drift
    shuffled = made(d)
    np.random.default_rng(2).shuffle(shuffled)
    assert drift(shuffled, 1) == found


@pytest.mark.parametrize("d", [np.arange(5.0), np.full(10, 3.0), np.zeros(8), [0.0] * 9 + [1.0]])
def test_too_few_or_degenerate_differences_show_no_drift(d):
    assert drift(made(d), 2) is None
