"""How many episodes of an evaluation are played side by side: the same for every group and every run."""

from __future__ import annotations


def episode_sizes(eval_episodes: int, n_envs: int) -> tuple[int, ...]:
    """Return how many episodes are played side by side, time after time: `n_envs`, and at last what is left."""
    full, rest = divmod(eval_episodes, n_envs)
    return (n_envs,) * full + ((rest,) if rest else ())


def greedy_episodes(eval_episodes: int, n_envs: int) -> int:
    """Return how many episodes a learner plays with greedy actions, too: as many as at first; never in the outcome."""
    return min(eval_episodes, n_envs)
