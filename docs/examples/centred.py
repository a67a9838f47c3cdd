"""A reward for CartPole: the environment's own, less the cart's distance from the centre."""

import msgspec
import numpy as np


class Params(msgspec.Struct):
    """Constants of `reward`, which a group may set."""

    weight: float = 1.0


def reward(facts, params: Params):
    """Return one number per environment."""
    return facts.env_reward - params.weight * np.abs(facts.next_observation[:, 0])
