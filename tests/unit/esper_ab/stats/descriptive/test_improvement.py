"""Wins, A12 and Cliff's delta by their definitions; the interval covers with few runs, and where groups separate."""

import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from support.outcomes.paired_outcomes import columns, paired

from esper_ab.stats.descriptive.improvement import in_words, probability_of_improvement
from esper_ab.stats.descriptive.improvement_interval import improvement_interval


def test_improvement_in_words():
    result = probability_of_improvement([3.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    assert in_words("x", "y", result) == "x beats y in 1 of 3 pairs, 1 tied"


@given(paired)
def test_it_is_counted_and_cliffs_delta_is_by_its_definition(rows):
    a, b = columns(rows)
    found = probability_of_improvement(a, b)
    apart = np.subtract(a, b)
    assert (found.wins, found.ties, found.losses) == ((apart > 0).sum(), (apart == 0).sum(), (apart < 0).sum())
    above, below = (np.mean(op(np.subtract.outer(a, b), 0.0)) for op in (np.greater, np.less))
    assert found.cliffs_delta == pytest.approx(above - below, abs=1e-12)
    assert found.a12 == pytest.approx(stats.mannwhitneyu(a, b).statistic / len(rows) ** 2, abs=1e-12)


def test_many_pairs_need_no_matrix_of_all_combinations():
    """A matrix of 300,000 x 300,000 would have 720 GB."""
    a = np.arange(300_000.0)
    found = probability_of_improvement(a, a[::-1])
    assert found.a12 == 0.5
    assert probability_of_improvement(a + 1.0, a).a12 == pytest.approx(0.5 + 1 / 300_000 - 0.5 / 300_000**2, abs=1e-15)


@given(paired)
def test_limits_are_where_the_largest_variance_puts_them(rows):
    found = improvement_interval(*columns(rows))
    z = stats.norm.isf(0.025)
    assert 0.0 <= found.low <= found.a12 <= found.high <= 1.0
    for limit in (found.low, found.high):
        if 0.0 < limit < 1.0:
            half = z * math.sqrt(limit * (1.0 - limit) / len(rows))
            assert abs(limit - found.a12) == pytest.approx(half, abs=1e-9)


@pytest.mark.parametrize("n", [6, 10, 20])
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("shift", [0.0, 2.0, 3.0])  # in SDs: P(improvement) 0.5, 0.92, 0.98
def test_the_interval_covers(n, rho, shift):
    rng = np.random.default_rng(n)
    common = rng.standard_normal((1_000, n))
    own = rng.standard_normal((2, 1_000, n))
    a, b = math.sqrt(rho) * common + math.sqrt(1.0 - rho) * own
    true = stats.norm.cdf(shift / math.sqrt(2.0))
    found = [improvement_interval(x + shift, y) for x, y in zip(a, b, strict=True)]
    assert np.mean([one.low <= true <= one.high for one in found]) >= 0.95 - 0.03
