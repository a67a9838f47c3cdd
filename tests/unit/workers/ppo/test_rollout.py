"""GAE against arithmetic done by hand and against its definition as a sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.ppo.rollout import cut_sequences, gae, of_steps


def column(*numbers: float) -> np.ndarray:
    return np.array(numbers, dtype=np.float64)[:, None]


def test_three_steps_by_hand_with_a_terminal_end():
    # gamma 0.5, lambda 0.5; the last step is terminal.
    # delta_2 = 3            - 4 = -1            A_2 = -1
    # delta_1 = 2 + 0.5 * 4  - 2 =  2            A_1 =  2 + 0.25 * -1    = 1.75
    # delta_0 = 1 + 0.5 * 2  - 1 =  1            A_0 =  1 + 0.25 * 1.75  = 1.4375
    dones = np.array([[False], [False], [True]])
    advantages, returns = gae(column(1, 2, 3), column(1, 2, 4), dones, 0.5, 0.5)
    assert advantages.ravel().tolist() == [1.4375, 1.75, -1.0]
    assert returns.ravel().tolist() == [2.4375, 3.75, 3.0]


def test_nothing_behind_a_terminal_step_reaches_it():
    dones = np.array([[False], [True], [True]])
    first, _ = gae(column(1, 2, 0), column(1, 2, 3), dones, 0.9, 0.9)
    second, _ = gae(column(1, 2, 50), column(1, 2, -70), dones, 0.9, 0.9)
    assert first[:2].tolist() == second[:2].tolist()


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
def test_equals_the_discounted_sum_of_td_errors(steps: int, key: int, gamma: float, lam: float):
    rng = np.random.default_rng(key)
    rewards, values = rng.standard_normal(steps), rng.standard_normal(steps)
    dones = np.arange(steps)[:, None] == steps - 1
    advantages, returns = gae(rewards[:, None], values[:, None], dones, gamma, lam)
    deltas = rewards + gamma * np.append(values[1:], 0.0) - values
    for start in range(steps):
        expected = sum((gamma * lam) ** (t - start) * deltas[t] for t in range(start, steps))
        assert advantages[start, 0] == pytest.approx(expected, abs=1e-9)
    assert returns == pytest.approx(advantages + values[:, None])


@given(st.integers(1, 7), st.integers(1, 4), st.randoms(use_true_random=False))
def test_sequences_hold_every_step_once_in_order_and_begin_at_starts(steps: int, columns: int, random) -> None:
    starts = np.array([[random.random() < 0.4 for _ in range(columns)] for _ in range(steps)])
    number = 1 + np.arange(steps * columns).reshape(columns, steps).T  # by column, in order
    arrays = {"number": number, "valid": np.ones(starts.shape, dtype=bool), "begins": starts}
    found, of_column, first = cut_sequences(arrays, starts)
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
