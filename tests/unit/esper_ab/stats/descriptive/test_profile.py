"""Performance profiles by their definition, and their band by plain resampling."""

import numpy as np
import pytest

from esper_ab.stats.descriptive.profile import profile, share_above


def test_a_profile_shows_the_share_of_runs_above_each_threshold():
    result = profile([1.0, 2.0, 3.0, 11.0], [4.0, 5.0])
    assert result.thresholds == pytest.approx(range(1, 12))
    assert result.a.shares == (0.75, 0.5, *(0.25,) * 8, 0.0)
    assert result.b.shares == (1.0, 1.0, 1.0, 0.5, *(0.0,) * 7)


def test_the_band_of_a_profile_equals_a_percentile_bootstrap():
    rng = np.random.default_rng(4)
    runs = rng.normal(70.0, 3.0, 17)
    thresholds = np.array([65.0, 68.0, 70.0, 74.0])
    resampled_shares = (runs[rng.integers(0, 17, (40_000, 17))][:, :, None] > thresholds).mean(axis=1)
    low, high = np.quantile(resampled_shares, (0.025, 0.975), axis=0)
    band = share_above(runs, thresholds)
    assert band.shares == pytest.approx((runs[:, None] > thresholds).mean(axis=0))
    assert (band.low, band.high) == (pytest.approx(low), pytest.approx(high))


def test_the_band_of_a_profile_has_no_width_outside_the_range_of_runs():
    band = share_above([1.0, 2.0, 3.0], [0.0, 9.0])
    assert (band.shares, band.low, band.high) == ((1.0, 0.0), (1.0, 0.0), (1.0, 0.0))
