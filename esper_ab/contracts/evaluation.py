"""How the episodes of an evaluation are dealt out to episodes: the same for every group and every run."""

from __future__ import annotations


def episode_sizes(eval_episodes: int, n_envs: int) -> tuple[int, ...]:
    """Return the episodes of each evaluation episode: `n_envs` side by side, and in the last one what is left."""
    full, rest = divmod(eval_episodes, n_envs)
    return (n_envs,) * full + ((rest,) if rest else ())


def greedy_episodes(eval_episodes: int, n_envs: int) -> int:
    """Return how many episodes a learner grows with greedy actions, too: the first episode's; never in the outcome."""
    return min(eval_episodes, n_envs)
