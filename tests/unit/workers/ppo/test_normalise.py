"""Running moments equal the moments of all observed rows, however they are merged."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ppo.normalise import ObservationNormaliser, ReturnNormaliser, RunningMoments, normalise_advantages


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 2**32 - 1), st.floats(-1e4, 1e4))
def test_merging_moments_piecewise_equals_merging_all_rows_at_once(lengths: list[int], key: int, offset: float):
    rng = np.random.default_rng(key)
    pieces = [rng.standard_normal((length, 3)) + offset for length in lengths]
    moments = RunningMoments(3, 0.0)
    for piece in pieces:
        moments.merge(piece)
    rows = np.concatenate(pieces)
    if len(rows):
        np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moments.std, rows.std(axis=0), rtol=1e-6, atol=1e-6)


def test_observations_before_the_first_rollout_are_only_clipped():
    raw = np.array([[0.25, -3.0, 50.0]], dtype=np.float32)
    assert ObservationNormaliser(3, std_floor=0.1, clip=10.0).normalise(raw).tolist() == [[0.25, -3.0, 10.0]]


def test_normalised_observations_have_mean_0_and_std_1():
    rng = np.random.default_rng(0)
    raw = np.column_stack([rng.normal(40.0, 5.0, 1000), np.full(1000, 0.5)]).astype(np.float32)
    normaliser = ObservationNormaliser(2, std_floor=0.1, clip=10.0)
    normaliser.merge(raw)
    normalised_rows = normaliser.normalise(raw)
    assert normalised_rows.dtype == np.float32
    assert normalised_rows[:, 0].mean() == pytest.approx(0.0, abs=1e-4)
    assert normalised_rows[:, 0].std() == pytest.approx(1.0, abs=1e-4)
    assert normaliser.normalise(np.array([[40.0, 0.6]], dtype=np.float32))[0, 1] == pytest.approx(1.0, abs=1e-5)


def test_denormalising_returns_inverts_normalising_them():
    normaliser = ReturnNormaliser()
    normaliser.moments.merge(np.array([[1.0], [5.0], [9.0]]))
    returns = np.array([[2.0, -7.0]])
    assert normaliser.normalise(np.array([5.0])).tolist() == [0.0]
    np.testing.assert_allclose(normaliser.denormalise(normaliser.normalise(returns)), returns)


def test_advantages_are_normalised_over_valid_steps_only():
    rng = np.random.default_rng(0)
    advantages = rng.standard_normal((6, 4)) + 2.0
    returns = rng.standard_normal((6, 4))
    valid_mask = np.ones((6, 4), dtype=bool)
    valid_mask[3:, 1] = False
    expected = advantages[valid_mask].std()
    advantages[~valid_mask] = returns[~valid_mask] = 1e30
    normalised_advantages, std = normalise_advantages(advantages, returns, valid_mask)
    assert std == expected
    assert normalised_advantages[valid_mask].mean() == pytest.approx(0.0, abs=1e-12)
    assert normalised_advantages[valid_mask].std() == pytest.approx(1.0)
    advantages[valid_mask] = 0.3
    equal_advantages, std_of_equal = normalise_advantages(advantages, returns, valid_mask)
    assert (equal_advantages[valid_mask].tolist(), std_of_equal) == ([0.0] * 21, 0.0)


def test_advantages_far_smaller_than_the_returns_are_still_normalised():
    """A thousand millionth of the returns is small, but no rounding; what is rounding depends on the returns."""
    small_advantages = np.array([[1e-9, -1e-9], [2e-9, -2e-9]])
    returns = np.ones((2, 2))
    valid_mask = np.ones((2, 2), dtype=bool)
    normalised_advantages, std = normalise_advantages(small_advantages, returns, valid_mask)
    assert std == pytest.approx(math.sqrt(2.5) * 1e-9)
    assert normalised_advantages.std() == pytest.approx(1.0)
    normalised_rounding, std_of_rounding = normalise_advantages(small_advantages * 1e-7, returns, valid_mask)
    assert (normalised_rounding.tolist(), std_of_rounding) == ([[0.0, 0.0], [0.0, 0.0]], 0.0)
    normalised_advantages, _ = normalise_advantages(small_advantages * 1e-7, returns * 1e-7, valid_mask)
    assert normalised_advantages.std() == pytest.approx(1.0)


def test_values_are_not_scaled_until_returns_differ():
    normaliser = ReturnNormaliser()
    values = np.array([-3.0, 0.1, 7.0])
    assert normaliser.denormalise(values).tolist() == [0.0, 0.0, 0.0]
    for _ in range(3):
        normaliser.moments.merge(np.full((7, 1), 0.1))
        assert normaliser.std == 0.0
        assert normaliser.denormalise(values) == pytest.approx([0.1, 0.1, 0.1])
        assert normaliser.normalise(np.array([0.1, 0.1])).tolist() == [0.0, 0.0]
    normaliser.moments.merge(np.array([[0.1 + 1e-9]]))
    assert normaliser.std == pytest.approx(1e-9 * math.sqrt(21) / 22, rel=1e-6)


def test_a_normaliser_state_of_another_width_is_refused():
    with pytest.raises(ValueError, match="width"):
        RunningMoments(3, 0.0).load(RunningMoments(2, 0.0).state())
