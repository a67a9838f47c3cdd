"""The bound of pooled experiments: poolings share alpha, and pairs that an early stop saved count in the error."""

import math

import pytest
from scipy import stats

from esper_ab.stats.pooled_bound import alpha_of_pooling, bound_after_early_stops


def test_all_numbers_of_pooled_experiments_together_spend_alpha():
    shares = [alpha_of_pooling(0.05, experiments) for experiments in range(2, 60)]
    assert shares[:2] == [0.025, 0.0125]
    assert sum(shares) == pytest.approx(0.05)


def test_without_early_stops_the_bound_is_alpha():
    assert bound_after_early_stops(0.025, 39, pairs=40, planned_pairs=40) == 0.025


def test_saved_pairs_make_the_bound_stricter_as_if_the_standard_error_counted_them():
    bound = bound_after_early_stops(0.025, 33, pairs=34, planned_pairs=40)
    t_needed = stats.t.isf(bound / 2, 33)
    assert t_needed * math.sqrt(34 / 40) == pytest.approx(stats.t.isf(0.0125, 33))
