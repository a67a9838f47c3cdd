"""Generalised advantage estimation (Schulman et al. 2016, arXiv:1506.02438, equation 16). Pure."""

from __future__ import annotations

import numpy as np

from workers.arrays import Bools, Floats


def gae(
    rewards: Floats, values: Floats, dones: Bools, last_value: Floats, gamma: float, lam: float
) -> tuple[Floats, Floats]:
    """Return advantages and returns (advantage + value), both [T, E].

    rewards, values, dones: [T, E]; `dones[t]`: step t was terminal, so nothing after it reaches step t. last_value:
    [E], value of the observation after step T-1; used only where `dones[T-1]` is False, in an episode that goes on.
    Rewards and values are in the same unit, and so are the results.
    """
    continues = 1.0 - dones.astype(np.float64)
    next_values = np.concatenate([values[1:], last_value[None]])
    deltas = rewards + gamma * continues * next_values - values
    advantages = np.empty_like(deltas)
    running = np.zeros_like(last_value)
    for step in reversed(range(len(deltas))):
        running = deltas[step] + gamma * lam * continues[step] * running
        advantages[step] = running
    return advantages, advantages + values
