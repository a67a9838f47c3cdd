"""Running moments equal the moments of everything seen, whatever the pieces."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ppo.normalise import ObservationNormaliser, ReturnNormaliser, RunningMoments


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 2**32 - 1), st.floats(-1e4, 1e4))
def test_merging_pieces_equals_seeing_all_rows_at_once(lengths: list[int], key: int, offset: float):
    rng = np.random.default_rng(key)
    pieces = [rng.standard_normal((length, 3)) + offset for length in lengths]
    moments = RunningMoments(3, 0.0)
    for piece in pieces:
        moments.merge(piece)
    rows = np.concatenate(pieces)
    if len(rows):
        np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moments.std, rows.std(axis=0), rtol=1e-6, atol=1e-6)


def test_before_any_rollout_observations_are_seen_as_they_are_but_clipped():
    raw = np.array([[0.25, -3.0, 50.0]], dtype=np.float32)
    assert ObservationNormaliser(3).normalise(raw).tolist() == [[0.25, -3.0, 10.0]]


def test_normalised_observations_have_mean_0_and_std_1_and_a_constant_entry_does_not_explode():
    rng = np.random.default_rng(0)
    raw = np.column_stack([rng.normal(40.0, 5.0, 1000), np.full(1000, 0.5)]).astype(np.float32)
    normaliser = ObservationNormaliser(2)
    normaliser.moments.merge(raw)
    seen = normaliser.normalise(raw)
    assert seen.dtype == np.float32
    assert seen[:, 0].mean() == pytest.approx(0.0, abs=1e-4)
    assert seen[:, 0].std() == pytest.approx(1.0, abs=1e-4)
    assert normaliser.normalise(np.array([[40.0, 0.6]], dtype=np.float32))[0, 1] == pytest.approx(1.0, abs=1e-5)


def test_returns_survive_the_way_there_and_back():
    normaliser = ReturnNormaliser()
    normaliser.moments.merge(np.array([[1.0], [5.0], [9.0]]))
    returns = np.array([[2.0, -7.0]])
    assert normaliser.normalise(np.array([5.0])).tolist() == [0.0]
    np.testing.assert_allclose(normaliser.denormalise(normaliser.normalise(returns)), returns)


def test_a_state_of_another_width_is_refused():
    with pytest.raises(ValueError, match="width"):
        RunningMoments(3, 0.0).load(RunningMoments(2, 0.0).state())
