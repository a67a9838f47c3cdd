"""GAE against its definition as a sum, and sequences for a network with a memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.actor_critic import Decision
from workers.ppo.rollout import RolloutBuffer, cut_sequences, gae, of_steps


def test_steps_after_a_terminal_step_do_not_change_its_advantage():
    rewards = np.array([[1.0, 1.0], [2.0, 2.0], [0.0, 50.0]])
    values = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, -70.0]])
    advantages, _ = gae(rewards, values, np.array([[False] * 2, [True] * 2, [True] * 2]), 0.9, 0.9)
    assert advantages[:2, 0].tolist() == advantages[:2, 1].tolist()


@given(st.integers(1, 12), st.integers(0, 2**32 - 1), st.floats(0, 1), st.floats(0, 1))
def test_advantages_equal_the_discounted_sum_of_td_errors(steps: int, key: int, gamma: float, lam: float):
    rng = np.random.default_rng(key)
    rewards = rng.standard_normal(steps)
    values = rng.standard_normal(steps)
    dones = np.arange(steps)[:, None] == steps - 1
    advantages, returns = gae(rewards[:, None], values[:, None], dones, gamma, lam)
    deltas = rewards + gamma * np.append(values[1:], 0.0) - values
    for start in range(steps):
        expected = sum((gamma * lam) ** (t - start) * deltas[t] for t in range(start, steps))
        assert advantages[start, 0] == pytest.approx(expected, abs=1e-9)
    assert returns == pytest.approx(advantages + values[:, None])


@given(st.integers(1, 7), st.integers(1, 4), st.randoms(use_true_random=False))
def test_sequences_contain_every_step_once_in_order(steps: int, columns: int, random_source) -> None:
    starts = np.array([[random_source.random() < 0.4 for _ in range(columns)] for _ in range(steps)])
    number = 1 + np.arange(steps * columns).reshape(columns, steps).T  # by column, in order
    arrays = {"number": number, "valid": np.ones(starts.shape, dtype=bool), "begins": starts}
    sequences, column_numbers, is_first = cut_sequences(arrays, starts)
    joined_numbers = sequences["number"].T[sequences["valid"].T]
    assert joined_numbers.tolist() == np.sort(number, axis=None).tolist()
    assert column_numbers[is_first].tolist() == list(range(columns))
    assert not sequences["begins"][1:].any()  # a memory is emptied nowhere but before a sequence
    assert sequences["begins"][0][~is_first].all()
    assert not sequences["number"][~sequences["valid"]].any()
    assert sequences["number"].dtype == number.dtype


def test_without_memory_every_valid_step_is_a_sequence() -> None:
    valid_mask = np.array([[True, True], [True, False]])
    sequences = of_steps({"x": np.arange(8.0).reshape(2, 2, 2), "valid": valid_mask}, valid_mask)
    assert sequences["x"].tolist() == [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]
    assert sequences["valid"].all()


def test_an_environment_stays_done_after_its_last_step():
    buffer = RolloutBuffer()
    decision = Decision(np.zeros((2, 1), dtype=np.int64), None, np.zeros(2), np.zeros(2))
    for done_flags, alive_flags in (
        ((False, True), (True, True)),
        ((False, False), (True, False)),
        ((True, False), (True, False)),
    ):
        buffer.decided(np.zeros((2, 3), dtype=np.float32), decision)
        buffer.rewarded(np.ones(2), np.array(done_flags), np.array(alive_flags))
    rollout = buffer.rollout()
    assert rollout is not None
    assert rollout.dones.T.tolist() == [[False, False, True], [True, True, True]]
    assert rollout.rewards.T.tolist() == [[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]]
