"""The mean of outcomes beside a bar: which side is claimed, by which rule, and how many seeds would do."""

import math

import numpy as np
import pytest
from scipy import stats

from esper_ab.stats.mean_and_bar import mean_and_bar, seeds_needed

SPREAD = [9.0, 10.0, 11.0, 10.5, 9.5, 10.0, 10.2, 9.8]


@pytest.mark.parametrize(("bar", "side"), [(5.0, 1), (9.9, 0), (10.1, 0), (15.0, -1)])
def test_a_side_is_claimed_where_the_interval_excludes_the_bar(bar, side):
    answer = mean_and_bar(SPREAD, bar, 0.05)
    assert answer.side == side
    assert (answer.low > bar, answer.high < bar) == (side > 0, side < 0)
    assert (answer.count, answer.mean) == (8, pytest.approx(10.0))


def test_the_e_value_at_the_ends_is_the_bayes_factor_of_t():
    """Computed anew: the ratio of the noncentral t, averaged over N(0, 1) effects, to the central t."""
    answer = mean_and_bar(SPREAD, 0.0, 0.05)
    n = len(SPREAD)
    t = (answer.mean - answer.low) / (answer.sd / math.sqrt(n))
    effects = np.linspace(-8.0, 8.0, 4001)
    weights = stats.norm.pdf(effects) * (effects[1] - effects[0])
    evidence = float(weights @ stats.nct.pdf(t, n - 1, effects * math.sqrt(n)) / stats.t.pdf(t, n - 1))
    assert evidence == pytest.approx(10.0, rel=1e-3)


def test_fewer_than_six_outcomes_claim_nothing():
    assert mean_and_bar(SPREAD[:5], -100.0, 0.05).side == 0


@pytest.mark.parametrize("others", [[], [11.0], [11.0, 12.0, 9.0, 8.0, 7.0]])
def test_outcomes_most_of_which_are_equal_claim_nothing_without_a_range(others):
    outcomes = [10.0] * 12 + others
    answer = mean_and_bar(outcomes, 1.0, 0.05)
    assert answer.lacks_spread
    assert (answer.side, answer.alike) == (0, 12)
    assert mean_and_bar(outcomes, 1.0, 0.05, (0.0, 12.0)).side == 1


def test_the_rule_for_any_shape_counts_failures_that_may_be_unseen():
    """A mean of 90 would be possible with a failure at 0 in one of ten runs, which six runs miss in half the cases."""
    outcomes = [99.0, 100.0, 98.0, 99.5, 100.0, 97.0]
    assert mean_and_bar(outcomes, 90.0, 0.05).side == 1
    assert mean_and_bar(outcomes, 90.0, 0.05, (0.0, 100.0)).side == 0
    assert mean_and_bar(outcomes, 40.0, 0.05, (0.0, 100.0)).side == 1
    assert mean_and_bar([0.0] * 6, 90.0, 0.05, (0.0, 100.0)).side == -1


def test_seeds_needed_decide_and_one_fewer_does_not():
    count = seeds_needed(0.7, 1.0, 0.05)
    assert count is not None
    rng = np.random.default_rng(0)
    for n, side in ((count, 1), (count - 1, 0)):
        z = rng.standard_normal(n)
        scaled = 0.7 + (z - z.mean()) / z.std(ddof=1)
        assert mean_and_bar(list(scaled), 0.0, 0.05).side == side


@pytest.mark.parametrize(("difference", "sd"), [(0.0, 1.0), (1.0, 0.0), (1e-9, 1.0)])
def test_no_number_of_seeds_is_named_where_none_would_do(difference, sd):
    assert seeds_needed(difference, sd, 0.05) is None
