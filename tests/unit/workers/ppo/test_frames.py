"""Stacks of observations: filled at the start of an episode, shifted afterwards, kept between rollouts."""

import numpy as np

from workers.ppo.frames import FrameStack


def row(*numbers: float) -> np.ndarray:
    """Observations of width 2 of one environment each: the number and its negative."""
    return np.array([[number, -number] for number in numbers], dtype=np.float32)


def test_a_stack_has_the_last_observations_oldest_first():
    frames = FrameStack(3)
    frames.begin(2)
    assert frames.push(row(1, 5)).tolist() == [[1, -1, 1, -1, 1, -1], [5, -5, 5, -5, 5, -5]]
    assert frames.push(row(2, 6)).tolist() == [[1, -1, 1, -1, 2, -2], [5, -5, 5, -5, 6, -6]]
    assert frames.after(row(3, 7)).tolist() == [[1, -1, 2, -2, 3, -3], [5, -5, 6, -6, 7, -7]]
    assert frames.push(row(4, 8)).tolist() == [[1, -1, 2, -2, 4, -4], [5, -5, 6, -6, 8, -8]]


def test_another_episode_begins_with_a_new_stack():
    frames = FrameStack(2)
    frames.begin(2)
    frames.push(row(1, 5))
    frames.restart(np.array([False, True]))
    assert frames.push(row(2, 6)).tolist() == [[1, -1, 2, -2], [6, -6, 6, -6]]
    assert frames.push(row(3, 7)).tolist() == [[2, -2, 3, -3], [6, -6, 7, -7]]
    frames.begin(1)
    assert frames.push(row(9)).tolist() == [[9, -9, 9, -9]]


def test_environments_that_continue_keep_their_stack_in_the_next_rollout():
    frames = FrameStack(2)
    frames.begin(2)
    kept_rows = frames.push(row(1, 5))
    frames.begin(2, kept_rows, np.array([True, False]))
    assert frames.push(row(2, 6)).tolist() == [[1, -1, 2, -2], [6, -6, 6, -6]]
    assert kept_rows.tolist() == [[1, -1, 1, -1], [5, -5, 5, -5]]


def test_a_depth_of_1_passes_observations_through():
    frames = FrameStack(1)
    frames.begin(2)
    observation = row(1, 2)
    assert frames.push(observation) is observation
    assert frames.after(observation) is observation
    assert frames.rows is None
