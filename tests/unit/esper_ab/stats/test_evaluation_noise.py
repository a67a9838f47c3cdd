"""The number of episodes that minimises variance times cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esper_ab.stats.evaluation_noise import best_eval_episodes, most_eval_episodes, variance_times_cost

ratios = st.one_of(st.just(0.0), st.floats(-0.5, 0.0), st.floats(1e-6, 1e3))
trainings = st.floats(1.0, 1e6)
steps = st.integers(1, 64)


@given(ratios, trainings, steps, st.lists(st.integers(1, 10_000), min_size=1, max_size=40))
def test_the_best_number_of_episodes_minimises_variance_times_cost(ratio, training, step, grid):
    eval_episodes = best_eval_episodes(ratio, training, step)
    episode_limit = most_eval_episodes(training, step)
    assert eval_episodes % step == 0
    assert step <= eval_episodes <= episode_limit
    least_cost = variance_times_cost(eval_episodes, ratio, training)
    for other_episodes in (step, episode_limit, *(min(step * times, episode_limit) for times in grid)):
        assert least_cost <= variance_times_cost(other_episodes, ratio, training) * (1 + 1e-12)


@given(trainings)
def test_the_maximum_number_of_episodes_is_nearly_as_good_as_infinitely_many(training):
    """The product falls towards 1; the limit on episodes keeps it up to a quarter above, plus the rounding."""
    eval_episodes = best_eval_episodes(0.0, training, 1)
    assert eval_episodes == most_eval_episodes(training, 1)
    assert variance_times_cost(eval_episodes, 0.0, training) <= 1.25 + 1 / eval_episodes


def test_the_best_number_of_episodes_equals_a_value_computed_by_hand():
    """96 training episodes and policies that vary an eighth as much as episodes: sqrt(96 * 8) = 27.7."""
    assert best_eval_episodes(1 / 8, 96.0, 1) == 28
    assert best_eval_episodes(1 / 8, 96.0, 8) in (24, 32)
    assert variance_times_cost(28, 1 / 8, 96.0) == pytest.approx((1 / 8 + 1 / 28) * 124)
