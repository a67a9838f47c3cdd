import numpy as np
import pytest
from scipy import stats

from esper_ab.stats.mean_intervals import mean_intervals


def test_each_group_gets_the_wider_of_two_intervals():
    groups = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 7.1, 7.2]]
    (low, high), _, (tight_low, tight_high) = mean_intervals(groups, 0.05)
    assert (low, high) == pytest.approx(stats.t.interval(0.975, 2, 2.0, 1.0 / np.sqrt(3)))
    pooled_sd = np.sqrt((1.0 + 1.0 + 0.01) / 3)
    half_width = stats.t.isf(0.05 / 3 / 2, 6) * pooled_sd / np.sqrt(3)
    assert (tight_low, tight_high) == pytest.approx((7.1 - half_width, 7.1 + half_width))


def test_the_interval_of_a_single_run_uses_the_pooled_deviation():
    (low, high), _ = mean_intervals([[5.0], [1.0, 2.0]], 0.05)
    assert (low + high) / 2 == 5.0
    assert high - 5.0 == pytest.approx(stats.t.isf(0.05 / 4, 1) * np.sqrt(0.5))


@pytest.mark.parametrize("groups", [[[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]]])
def test_means_without_spread_have_no_intervals(groups):
    assert mean_intervals(groups, 0.05) is None
