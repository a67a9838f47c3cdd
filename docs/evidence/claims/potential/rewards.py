"""Potential-based shaping (Ng, Harada and Russell 1999): discounted as returns are, and 0 where an episode ends.

The potential is a height between 0 and 1: that of the tip of Acrobot's arm, and that of Pendulum's bob.
"""

import msgspec
import numpy as np


class ShapedSettings(msgspec.Struct):
    """Constants of `shaped`."""

    gamma: float = 0.99  # the discount of returns, as in claim.toml
    weight: float = 50.0  # of a height between 0 and 1


def height(observation):
    """Return the height [E] from observations [E, 6] of Acrobot or [E, 3] of Pendulum."""
    columns = observation.astype(np.float64).T
    if len(columns) == 6:
        cos_first, sin_first, cos_second, sin_second = columns[:4]
        tip = -cos_first - (cos_first * cos_second - sin_first * sin_second)  # -2 to 2
        return (tip + 2.0) / 4.0
    return (columns[0] + 1.0) / 2.0


def shaped(facts, settings: ShapedSettings):
    """Return the environment's reward and the discounted change of the potential."""
    potential = settings.weight * height(facts.observation)
    next_potential = np.where(facts.terminated, 0.0, settings.weight * height(facts.next_observation))
    return facts.env_reward + settings.gamma * next_potential - potential
