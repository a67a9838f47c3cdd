"""Wins, A12 and Cliff's delta against their definitions, and the coverage of the interval."""

import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from support.outcomes.paired_outcomes import columns, paired

from esper_ab.stats.descriptive.improvement import in_words, probability_of_improvement
from esper_ab.stats.descriptive.improvement_interval import improvement_interval


def test_improvement_is_described_as_wins_and_ties():
    result = probability_of_improvement([3.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    assert in_words("x", "y", result) == "x beats y in 1 of 3 pairs, 1 tied"


@given(paired)
def test_the_probabilities_of_improvement_equal_their_definitions(rows):
    a, b = columns(rows)
    improvement = probability_of_improvement(a, b)
    differences = np.subtract(a, b)
    assert (improvement.wins, improvement.ties, improvement.losses) == (
        (differences > 0).sum(),
        (differences == 0).sum(),
        (differences < 0).sum(),
    )
    share_above, share_below = (np.mean(op(np.subtract.outer(a, b), 0.0)) for op in (np.greater, np.less))
    assert improvement.cliffs_delta == pytest.approx(share_above - share_below, abs=1e-12)
    assert improvement.a12 == pytest.approx(stats.mannwhitneyu(a, b).statistic / len(rows) ** 2, abs=1e-12)


def test_the_probability_of_improvement_is_computed_for_300000_runs():
    """A matrix of 300,000 x 300,000 would take 720 GB."""
    a = np.arange(300_000.0)
    improvement = probability_of_improvement(a, a[::-1])
    assert improvement.a12 == 0.5
    assert probability_of_improvement(a + 1.0, a).a12 == pytest.approx(0.5 + 1 / 300_000 - 0.5 / 300_000**2, abs=1e-15)


@given(paired)
def test_the_interval_of_the_probability_of_improvement_is_a_score_interval(rows):
    improvement = improvement_interval(*columns(rows))
    z = stats.norm.isf(0.025)
    assert 0.0 <= improvement.low <= improvement.a12 <= improvement.high <= 1.0
    for limit in (improvement.low, improvement.high):
        if 0.0 < limit < 1.0:
            half_width = z * math.sqrt(limit * (1.0 - limit) / len(rows))
            assert abs(limit - improvement.a12) == pytest.approx(half_width, abs=1e-9)


@pytest.mark.parametrize("n", [6, 10, 20])
@pytest.mark.parametrize("rho", [0.0, 0.9])
@pytest.mark.parametrize("shift", [0.0, 2.0, 3.0])  # in SDs: P(improvement) 0.5, 0.92, 0.98
def test_the_interval_covers_the_true_probability(n, rho, shift):
    rng = np.random.default_rng(n)
    shared_part = rng.standard_normal((1_000, n))
    own_parts = rng.standard_normal((2, 1_000, n))
    a, b = math.sqrt(rho) * shared_part + math.sqrt(1.0 - rho) * own_parts
    true_probability = stats.norm.cdf(shift / math.sqrt(2.0))
    intervals = [improvement_interval(x + shift, y) for x, y in zip(a, b, strict=True)]
    assert np.mean([interval.low <= true_probability <= interval.high for interval in intervals]) >= 0.95 - 0.03
