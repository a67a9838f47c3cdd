"""How the hosts of an evaluation are dealt out to episodes: the same for every group and every run."""

from __future__ import annotations


def episode_sizes(hosts: int, n_envs: int) -> tuple[int, ...]:
    """Return the hosts of each evaluation episode: `n_envs` side by side, and in the last one what is left."""
    full, rest = divmod(hosts, n_envs)
    return (n_envs,) * full + ((rest,) if rest else ())


def greedy_hosts(hosts: int, n_envs: int) -> int:
    """Return how many hosts a learner grows with greedy actions, too: the first episode's; never in the endpoint."""
    return min(hosts, n_envs)
