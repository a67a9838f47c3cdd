"""Two rewards for MountainCar-v0 that know the same of the car, its energy.

`energy` pays for having it, `gain` for getting more of it.
"""

import msgspec
import numpy as np


class EnergySettings(msgspec.Struct):
    """Constants of `energy`."""

    weight: float = 6.0


class GainSettings(msgspec.Struct):
    """Constants of `gain`."""

    weight: float = 100.0


def mechanical(observation):
    """Return the car's energy [E]: 0 at rest in the valley, 1 at rest on the top where the flag is.

    Gymnasium's car has position x and velocity v, with x'' = 0.001 push - 0.0025 cos 3x, so 0.0025 sin(3x) / 3 is its
    potential energy and v^2 / 2 its kinetic energy.
    """
    x, v = observation.astype(np.float64).T
    return (1.0 + np.sin(3.0 * x) + v**2 / 2.0 * 3.0 / 0.0025) / 2.0


def energy(facts, settings: EnergySettings):
    """Return -1 per step, and what the car has: the more, the longer it swings."""
    return facts.env_reward + settings.weight * mechanical(facts.next_observation)


def gain(facts, settings: GainSettings):
    """Return -1 per step, and the change of what the car has: over an episode its sum depends on the ends alone."""
    return facts.env_reward + settings.weight * (mechanical(facts.next_observation) - mechanical(facts.observation))
