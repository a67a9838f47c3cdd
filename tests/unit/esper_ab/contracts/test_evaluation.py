"""Sizes of the episodes of an evaluation."""

from hypothesis import given
from hypothesis import strategies as st

from esper_ab.contracts.evaluation import episode_sizes, greedy_episodes


@given(st.integers(1, 500), st.integers(1, 64))
def test_the_episode_sizes_add_up_to_the_number_of_evaluation_episodes(eval_episodes, n_envs):
    sizes = episode_sizes(eval_episodes, n_envs)
    assert sum(sizes) == eval_episodes
    assert set(sizes[:-1]) <= {n_envs}
    assert 1 <= sizes[-1] <= n_envs
    assert greedy_episodes(eval_episodes, n_envs) == sizes[0]
