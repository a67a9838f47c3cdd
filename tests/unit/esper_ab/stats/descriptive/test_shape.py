"""Skewness against scipy, and Johnson's t against a value computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.descriptive.shape import shape

seeds = st.integers(0, 10**6)


@given(seeds, st.integers(6, 30))
def test_the_skewness_of_groups_equals_scipy(rng_seed, n):
    rng = np.random.default_rng(rng_seed)
    a = -rng.exponential(size=n)
    b = 0.1 * rng.standard_normal(n)
    forward = shape(a, b)
    swapped_shape = shape(b, a)
    assert (forward.skewness_a, forward.skewness_b) == pytest.approx((stats.skew(a), stats.skew(b)))
    assert (swapped_shape.skewness_a, swapped_shape.skewness_b) == (forward.skewness_b, forward.skewness_a)
    assert swapped_shape.johnson_p == pytest.approx(forward.johnson_p)


def test_johnsons_t_equals_a_value_computed_by_hand():
    """d = 1, 2, 3, 10: mean 4, s^2 = 50/3, third moment 45; t = (4 + 45/(6*4*50/3) + 45*16/(3*(50/3)^2)) * 2/s."""
    t = (4.0 + 45.0 / (24.0 * 50.0 / 3.0) + 45.0 * 16.0 / (3.0 * (50.0 / 3.0) ** 2)) * 2.0 / np.sqrt(50.0 / 3.0)
    assert shape([1.0, 2.0, 3.0, 10.0], [0.0] * 4).johnson_p == pytest.approx(2.0 * stats.t.sf(t, 3))
