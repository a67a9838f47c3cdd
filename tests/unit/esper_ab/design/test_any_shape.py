"""The price of claims for any shape: the pairs that they take, against drawn experiments and the least possible."""

import math

import numpy as np
import pytest

from esper_ab.design.any_shape import (
    MOST_PAIRS,
    fewest_pairs,
    log_evidence_of,
    required_evidence,
    smallest_difference,
)
from esper_ab.stats.bounded_mean import log_evidence


def test_each_side_of_an_interval_requires_twice_the_inverse_of_alpha():
    assert required_evidence(0.05) == 40.0


@pytest.mark.parametrize(("size", "difference"), [(20.0, 2.0), (10.0, 1.0), (5.0, 1.0), (3.0, 1.0), (5.0, 0.5)])
def test_with_the_fewest_pairs_four_of_five_drawn_experiments_reach_the_evidence(size, difference):
    pairs = fewest_pairs(1.0, difference, size, 40.0)
    drawn = difference + np.random.default_rng(3).standard_normal((3_000, pairs))
    power = np.mean(log_evidence(np.maximum(drawn, -size), size) >= math.log(40.0))
    assert 0.78 <= power <= 0.92  # one pair more may add a tenth


@pytest.mark.parametrize("size", [5.0, 20.0, 90.0])
def test_no_more_pairs_are_needed_than_a_third_more_than_any_test_needs_if_runs_hardly_vary(size):
    """No test with an error of 0.025 finds c in 80 % with fewer than log(0.8 x 40) / log(1 + c / size) pairs."""
    least = math.log(0.8 * 40.0) / math.log(1.0 + 1.0 / size)
    assert least < fewest_pairs(0.0, 1.0, size, 40.0) < 1.34 * least


def test_more_spread_takes_more_pairs_and_no_difference_any_number():
    needs = [fewest_pairs(sd, 1.0, 5.0, 40.0) for sd in (0.0, 0.5, 1.0, 2.0)]
    assert needs == sorted(set(needs))
    assert fewest_pairs(1.0, 1e-9, 5.0, 40.0) == MOST_PAIRS


def test_the_smallest_difference_is_that_which_takes_as_many_pairs():
    difference = smallest_difference(1.0, 30, 10.0, 40.0)
    assert fewest_pairs(1.0, difference, 10.0, 40.0) == 30
    assert fewest_pairs(1.0, 0.99 * difference, 10.0, 40.0) > 30
    assert smallest_difference(1.0, 3, 10.0, 40.0) is None


def test_the_evidence_of_a_normal_sample_follows_from_its_mean_and_sd():
    drawn = 0.8 + np.random.default_rng(4).standard_normal((200, 25))
    by_moments = log_evidence_of(drawn.mean(axis=1), drawn.std(axis=1, ddof=1), np.full(200, 25.0), 6.0)
    assert by_moments == pytest.approx(log_evidence(drawn, 6.0), abs=0.15)
