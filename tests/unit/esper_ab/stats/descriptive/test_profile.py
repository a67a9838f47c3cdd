"""Performance profiles by their definition, and their band by plain resampling."""

import numpy as np
import pytest

from esper_ab.stats.descriptive.profile import profile, share_above


def test_a_profile_is_the_share_of_runs_above_each_threshold():
    found = profile([1.0, 2.0, 3.0, 11.0], [4.0, 5.0])
    assert found.thresholds == pytest.approx(range(1, 12))
    assert found.a.shares == (0.75, 0.5, *(0.25,) * 8, 0.0)
    assert found.b.shares == (1.0, 1.0, 1.0, 0.5, *(0.0,) * 7)


def test_the_band_is_that_of_a_percentile_bootstrap():
    rng = np.random.default_rng(4)
    runs = rng.normal(70.0, 3.0, 17)
    thresholds = np.array([65.0, 68.0, 70.0, 74.0])
    resampled = (runs[rng.integers(0, 17, (40_000, 17))][:, :, None] > thresholds).mean(axis=1)
    low, high = np.quantile(resampled, (0.025, 0.975), axis=0)
    found = share_above(runs, thresholds)
    assert found.shares == pytest.approx((runs[:, None] > thresholds).mean(axis=0))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_a_threshold_below_or_above_all_runs_has_no_width():
    found = share_above([1.0, 2.0, 3.0], [0.0, 9.0])
    assert (found.shares, found.low, found.high) == ((1.0, 0.0), (1.0, 0.0), (1.0, 0.0))
