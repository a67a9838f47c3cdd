"""Numbers of episodes that an evaluation plays side by side: the same for every group and run."""

from __future__ import annotations


def episode_sizes(eval_episodes: int, n_envs: int) -> tuple[int, ...]:
    """Return the number of episodes in each round of an evaluation: `n_envs`, and in the last round the remainder."""
    full_episodes, environments_left = divmod(eval_episodes, n_envs)
    return (n_envs,) * full_episodes + ((environments_left,) if environments_left else ())


def greedy_episodes(eval_episodes: int, n_envs: int) -> int:
    """Return how many extra, greedy episodes a learner plays: one round at most. They never count for the outcome."""
    return min(eval_episodes, n_envs)
