"""CartPole and Pendulum whose velocities are hidden: what they observe does not tell how they move."""

import gymnasium
import numpy as np
from gymnasium.spaces import Box


class Observed(gymnasium.ObservationWrapper):
    """Shows only some numbers of an environment's observation."""

    def __init__(self, env: gymnasium.Env, kept: tuple[int, ...]) -> None:
        super().__init__(env)
        self.kept = list(kept)
        self.observation_space = Box(env.observation_space.low[self.kept], env.observation_space.high[self.kept])

    def observation(self, observation: np.ndarray) -> np.ndarray:
        """Return the kept numbers."""
        return observation[self.kept]


def cartpole():
    """Return CartPole-v1 that shows the cart's position and the pole's angle."""
    return Observed(gymnasium.make("CartPole-v1"), (0, 2))


def pendulum():
    """Return Pendulum-v1 that shows the cosine and the sine of its angle."""
    return Observed(gymnasium.make("Pendulum-v1"), (0, 1))
