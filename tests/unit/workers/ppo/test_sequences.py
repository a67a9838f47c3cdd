"""Columns of a rollout, cut where a memory is emptied."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workers.ppo.sequences import cut, of_steps


@given(st.integers(1, 7), st.integers(1, 4), st.randoms(use_true_random=False))
def test_sequences_hold_every_step_once_in_order_and_begin_at_starts(steps: int, columns: int, random) -> None:
    starts = np.array([[random.random() < 0.4 for _ in range(columns)] for _ in range(steps)])
    number = 1 + np.arange(steps * columns).reshape(columns, steps).T  # by column, in order
    arrays = {"number": number, "valid": np.ones(starts.shape, dtype=bool), "begins": starts}
    found, of_column, first = cut(arrays, starts)
    joined = found["number"].T[found["valid"].T]
    assert joined.tolist() == np.sort(number, axis=None).tolist()
    assert of_column[first].tolist() == list(range(columns))
    assert not found["begins"][1:].any()  # a memory is emptied nowhere but before a sequence
    assert found["begins"][0][~first].all()
    assert not found["number"][~found["valid"]].any()
    assert found["number"].dtype == number.dtype


def test_without_a_memory_every_valid_step_is_a_sequence() -> None:
    valid = np.array([[True, True], [True, False]])
    found = of_steps({"x": np.arange(8.0).reshape(2, 2, 2), "valid": valid}, valid)
    assert found["x"].tolist() == [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]
    assert found["valid"].all()
