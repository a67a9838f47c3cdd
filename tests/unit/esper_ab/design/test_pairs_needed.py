"""Pairs that a margin needs: against statsmodels and a measured example, by the power they must have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.power import TTestPower

from esper_ab.design.pairs_needed import POWER, pairs_needed, power, smallest_resolvable
from esper_ab.stats.least_pairs import LEAST_PAIRS


def test_pairs_needed_matches_the_measured_example():
    needed = pairs_needed(sd=3.15, df=4, margin=2.0)
    assert (needed.pairs, needed.low, needed.high) == (22, 13, 76)


@given(st.floats(0.2, 8.0), st.floats(0.5, 4.0), st.integers(1, 3))
def test_pairs_needed_is_the_least_number_with_the_power(sd, margin, columns):
    n = pairs_needed(sd, 5, margin, columns=columns).pairs
    assert power(sd, margin, n, 0.05, columns) >= POWER
    assert n >= LEAST_PAIRS
    assert n == LEAST_PAIRS or power(sd, margin, n - 1, 0.05, columns) < POWER


def test_millions_of_pairs_are_counted_too():
    """As by the normal distribution: power 80 % at 5 %, two-sided."""
    normal = (1.959964 + 0.841621) ** 2 * 829.0**2
    assert pairs_needed(82.9, 9, 0.1).pairs == pytest.approx(normal, rel=1e-3)


@pytest.mark.parametrize(("pairs", "size", "alpha"), [(6, 1.0, 0.05), (12, 0.7, 0.01), (30, 0.5, 0.05)])
def test_power_equals_statsmodels(pairs, size, alpha):
    expected = TTestPower().power(size, pairs, alpha / 2.0, alternative="larger")  # the wrong tail is no power
    assert power(2.0, 2.0 * size, pairs, alpha) == pytest.approx(expected, abs=1e-9)


@given(st.floats(0.2, 8.0), st.integers(6, 40), st.sampled_from((0.05, 0.0455, 0.0076, 1e-4)), st.integers(1, 3))
def test_the_smallest_resolvable_difference_has_just_the_power(sd, pairs, alpha, columns):
    size = smallest_resolvable(sd, pairs, alpha, columns)
    assert power(sd, size, pairs, alpha, columns) == pytest.approx(POWER, abs=1e-6)


def test_nothing_is_resolvable_without_degrees_of_freedom_or_without_a_bound():
    assert smallest_resolvable(1.0, 2, 0.05, columns=2) is None
    assert smallest_resolvable(1.0, 9, 0.0) is None


def test_a_bound_that_depends_on_the_pairs_is_asked_at_each_number():
    fixed, late = pairs_needed(3.0, 9, 2.0, 0.05), pairs_needed(3.0, 9, 2.0, lambda pairs: 0.05 if pairs >= 40 else 0.0)
    assert fixed.pairs < 40
    assert (late.pairs, late.low, late.high) == (40, 40, max(40, fixed.high))


def test_one_degree_of_freedom_resolves_something_and_positions_cost_one_each():
    assert smallest_resolvable(1.0, 2, 0.05) == smallest_resolvable(1.0, 2, 0.05, columns=1)
    sizes = [smallest_resolvable(1.0, 6, 0.05, columns) for columns in range(1, 6)]
    assert smallest_resolvable(1.0, 6, 0.05) == sizes[0]
    assert sizes == sorted(sizes)
