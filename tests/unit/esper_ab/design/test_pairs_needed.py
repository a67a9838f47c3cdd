"""The pairs that a margin needs, against statsmodels, a measured example and the required power."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from esper_ab.design.pairs_needed import POWER, pairs_needed, power, smallest_resolvable
from esper_ab.stats.exact_signs import signs_p
from esper_ab.stats.least_pairs import LEAST_PAIRS


def test_pairs_needed_matches_the_measured_example():
    result = pairs_needed(sd=3.15, df=4, margin=2.0)
    assert (result.pairs, result.low, result.high) == (22, 13, 76)


@given(st.floats(0.2, 8.0), st.floats(0.5, 4.0), st.integers(1, 3))
def test_pairs_needed_is_the_smallest_number_with_the_requested_power(sd, margin, columns):
    n = pairs_needed(sd, 5, margin, columns=columns).pairs
    assert power(sd, margin, n, 0.05, columns) >= POWER
    assert n >= LEAST_PAIRS
    assert n == LEAST_PAIRS or power(sd, margin, n - 1, 0.05, columns) < POWER


@pytest.mark.parametrize("pairs", [7, 8])
def test_the_power_with_7_or_8_pairs_requires_the_sign_flip_test(pairs):
    """Against simulated experiments, at 0.05."""
    d = np.random.default_rng(pairs).standard_normal((20_000, pairs)) + 1.1
    t = d.mean(axis=1) / d.std(axis=1, ddof=1) * math.sqrt(pairs)
    claims = d[t >= stats.t.isf(0.025, pairs - 1)]
    share = np.sum(signs_p(claims) <= 0.05) / len(d)
    assert power(1.0, 1.1, pairs, 0.05) == pytest.approx(share, abs=0.012)
    assert power(1.0, 1.1, pairs, 0.05, signed=False) == pytest.approx(len(claims) / len(d), abs=0.01)
    assert len(claims) / len(d) - share > 0.02
    # The sign-flip test can never reach an alpha below 2 / 2^n, so it is not required.
    small_alpha = 0.01 if pairs == 7 else 0.005
    assert power(1.0, 1.1, pairs, small_alpha) == power(1.0, 1.1, pairs, small_alpha, signed=False)


def test_the_sign_flip_test_is_not_required_by_rules_with_varying_bounds():
    sd = 0.77
    assert power(sd, 1.0, 7, 0.05) < POWER < power(sd, 1.0, 7, 0.05, signed=False)
    assert pairs_needed(sd, 9, 1.0, lambda pairs: 0.05).pairs == 7 < pairs_needed(sd, 9, 1.0, 0.05).pairs


def test_pairs_needed_counts_millions_of_pairs():
    """The number agrees with the normal distribution: power 80 % at 5 %, two-sided."""
    normal_pairs = (1.959964 + 0.841621) ** 2 * 829.0**2
    assert pairs_needed(82.9, 9, 0.1).pairs == pytest.approx(normal_pairs, rel=1e-3)


@pytest.mark.parametrize(("pairs", "size", "alpha"), [(6, 1.0, 0.05), (12, 0.7, 0.01), (30, 0.5, 0.05)])
def test_the_power_of_one_look_equals_statsmodels(pairs, size, alpha):
    expected = TTestPower().power(size, pairs, alpha / 2.0, alternative="larger")  # the wrong tail does not count
    assert power(2.0, 2.0 * size, pairs, alpha) == pytest.approx(expected, abs=1e-9)


@given(st.floats(0.2, 8.0), st.integers(6, 40), st.sampled_from((0.05, 0.0455, 0.0076, 1e-4)), st.integers(1, 3))
def test_the_smallest_resolvable_difference_has_exactly_the_requested_power(sd, pairs, alpha, columns):
    size = smallest_resolvable(sd, pairs, alpha, columns)
    assert power(sd, size, pairs, alpha, columns) == pytest.approx(POWER, abs=1e-6)


def test_no_difference_is_resolvable_without_degrees_of_freedom():
    assert smallest_resolvable(1.0, 2, 0.05, columns=2) is None
    assert smallest_resolvable(1.0, 9, 0.0) is None


def test_pairs_needed_uses_the_bound_at_each_number_of_pairs():
    fixed_result = pairs_needed(3.0, 9, 2.0, 0.05)
    late_result = pairs_needed(3.0, 9, 2.0, lambda pairs: 0.05 if pairs >= 40 else 0.0)
    assert fixed_result.pairs < 40
    assert (late_result.pairs, late_result.low, late_result.high) == (40, 40, max(40, fixed_result.high))


def test_each_position_effect_costs_one_degree_of_freedom():
    assert smallest_resolvable(1.0, 2, 0.05) == smallest_resolvable(1.0, 2, 0.05, columns=1)
    sizes = [smallest_resolvable(1.0, 6, 0.05, columns) for columns in range(1, 6)]
    assert smallest_resolvable(1.0, 6, 0.05) == sizes[0]
    assert sizes == sorted(sizes)
