import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.paired_difference import paired_difference
from esper_ab.stats.rounding import alike, commonest, degenerate, resolution, steady
from esper_ab.stats.welch import welch

A = np.array([71.0, 70.2, 74.4, 69.9, 72.3, 70.8, 73.1])
B = np.array([68.0, 69.1, 70.0, 68.7, 69.7, 70.2, 69.4])
SCALES = st.integers(-30, 30).map(lambda power: 10.0**power)


@given(SCALES)
def test_the_unit_of_outcomes_does_not_affect_the_t_test(scale):
    """Losses around 1e-7 are distinguished like percentages."""
    a = A * scale
    b = B * scale
    assert alike(a, b) == alike(A, B) == 1
    assert commonest(np.concatenate((a, b)), resolution(a, b))[0] == commonest(np.concatenate((A, B)), 1e-9)[0]
    adjusted_result = adjusted_difference(a, b, [(0, 1)] * 7, 1)
    plain_result = paired_difference(a, b)
    assert (adjusted_result.t, plain_result.t) == pytest.approx((paired_difference(A, B).t,) * 2, rel=1e-6)


@given(SCALES, st.floats(-5.0, 5.0))
def test_rounding_errors_are_not_treated_as_spread(scale, shift):
    a = A * scale
    b = a - shift * scale
    assert degenerate(a, b)
    assert paired_difference(a, b).sd == 0.0
    assert adjusted_difference(a, b, [(0, 1)] * 7, 1).sd == 0.0


def test_outcomes_of_zero_are_treated_as_equal():
    assert resolution([0.0, 0.0], [0.0, 0.0]) == 0.0
    assert alike([0.0, 0.0], [0.0, 0.0]) == 2


@given(st.integers(1, 5), st.integers(9, 40).map(lambda power: 10.0**power), st.sampled_from(["a", "b", "both"]))
def test_huge_outcomes_of_some_pairs_do_not_hide_other_differences(pairs, penalty, side):
    a = A.copy()
    b = B.copy()
    for outcomes in {"a": [a], "b": [b], "both": [a, b]}[side]:
        outcomes[:pairs] = penalty
    assert alike(a[pairs:], b[pairs:]) == 1
    assert alike(a, b) <= pairs  # those with the penalty
    assert paired_difference(a, b).sd > 0.0
    assert pairs > 3 or not degenerate(a, b)


@given(st.floats(1e9, 1e40), st.integers(0, 6))
def test_one_large_run_does_not_make_other_runs_equal(penalty, index):
    a = A.copy()
    a[index] = penalty
    runs = np.concatenate((a, B + 0.01))
    assert commonest(runs, resolution(runs))[0] == 1
    assert welch(a.tolist(), B.tolist()).t is not None


def test_a_tiny_pair_does_not_turn_rounding_into_spread():
    a = [0.1 + 0.2] * 9
    b = [0.3] * 9
    for more_outcomes in ([1e-300], [0.0] * 11):
        assert paired_difference([*a, *more_outcomes], [*b, *more_outcomes]).sd == 0.0


@given(SCALES)
def test_differences_far_below_a_common_offset_are_treated_as_rounding(scale):
    a = (1e12 + A) * scale
    b = (1e12 + B) * scale
    assert (alike(a, b), paired_difference(a, b).sd) == (7, 0.0)
    assert welch(a.tolist(), b.tolist()).t is None


def test_groups_of_any_size_without_spread_have_no_test():
    """The rounding errors of a group are relative to its own outcomes."""
    assert welch([0.1 + 0.2, 0.3] * 4, [1e-30] * 8).t is None


@given(SCALES, st.floats(0.1, 50.0), st.sampled_from([-1.0, 1.0]))
def test_rounding_of_32_bit_floats_is_not_treated_as_spread(scale, shift, sign):
    a = (A * scale).astype(np.float32)
    b = (a + np.float32(sign * shift * scale)).astype(np.float32)
    assert (alike(a, b), degenerate(a, b)) == (7, True)
    result = paired_difference(a, b)
    assert (result.sd, result.t) == (0.0, None)
    assert result.mean == pytest.approx(-sign * shift * scale, rel=1e-4)


@given(SCALES, st.integers(7, 14))
def test_nearly_equal_groups_keep_their_spread(scale, digits):
    """The groups differ by as little as rounding, but these differences still vary."""
    noise = 10.0**-digits * np.array([1.0, -0.4, 0.3, 0.8, -0.2, 0.5, 0.1])
    a = A * scale
    b = A * (1.0 + 100.0 * noise) * scale
    assert alike(a, b) < 7 or digits > 11  # 12 digits reach the 64-bit resolution
    assert digits > 11 or paired_difference(a, b).t is not None


@pytest.mark.parametrize("spread", [0.001, 0.01, 0.1])
def test_a_small_spread_above_32_bit_resolution_is_kept(spread):
    """4.00 in every pair but for a thousandth: outcomes printed with three decimals."""
    b = A - 4.0 + spread * np.array([1.0, -1.0, 0.0, 1.0, 0.0, -1.0, 1.0])
    assert alike(A, b) < 7
    assert paired_difference(A, b).t is not None


def test_the_difference_of_one_large_pair_is_not_equal_to_the_others():
    a = np.append(A, 1e10 + 5000.0)
    b = np.append(A - 4.0, 1e10)
    assert alike(a, b) == 7


def test_groups_with_only_rounding_between_seeds_have_no_test():
    """Each group repeats one number, up to the noise of sums in another order."""
    jitter = 1e-6 * np.array([1.0, -2.0, 3.0, 0.0, -1.0, 2.0, 1.0])
    a = 71.25 + jitter
    b = 69.0 - jitter[::-1]
    assert steady(a, 2.25)
    assert welch(a.tolist(), b.tolist()).t is None
    assert paired_difference(a, b).sd == 0.0
    assert not steady(a, 1e-5)
    assert welch(a.tolist(), (71.25001 - jitter).tolist()).t is not None
