import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.pair import alike, commonest, degenerate, resolution
from esper_ab.stats.t_tests import paired_difference

A = np.array([71.0, 70.2, 74.4, 69.9, 72.3, 70.8, 73.1])
B = np.array([68.0, 69.1, 70.0, 68.7, 69.7, 70.2, 69.4])
SCALES = st.integers(-30, 30).map(lambda power: 10.0**power)


@given(SCALES)
def test_no_unit_is_too_small_or_too_large_for_a_test(scale):
    """Losses of order 1e-7 are told apart like percentages."""
    a, b = A * scale, B * scale
    assert alike(a, b) == alike(A, B) == 1
    assert commonest(np.concatenate((a, b)), resolution(a, b))[0] == commonest(np.concatenate((A, B)), 1e-9)[0]
    found, plain = adjusted_difference(a, b, [(0, 1)] * 7, 1), paired_difference(a, b)
    assert (found.t, plain.t) == pytest.approx((paired_difference(A, B).t,) * 2, rel=1e-6)


@given(SCALES, st.floats(-5.0, 5.0))
def test_rounding_is_no_spread(scale, shift):
    a = A * scale
    b = a - shift * scale
    assert degenerate(a, b)
    assert paired_difference(a, b).sd == 0.0
    assert adjusted_difference(a, b, [(0, 1)] * 7, 1).sd == 0.0


def test_outcomes_of_zero_are_one():
    assert resolution([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert alike([0.0, 0.0], [0.0, 0.0]) == 2
