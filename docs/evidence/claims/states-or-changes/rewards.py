"""Two rewards that know the same of a task, how high it has come: `states` pays for it, `changes` for getting higher.

Height is 0 at the lowest and 1 at the highest point. For the car of MountainCar it is the height that its energy would
take it to, for the arm of Acrobot that of its tip. The weights are those of docs/evidence/shaping.md for MountainCar;
Acrobot has the same.
"""

import msgspec
import numpy as np


class StatesSettings(msgspec.Struct):
    """Constants of `states`."""

    weight: float = 6.0


class ChangesSettings(msgspec.Struct):
    """Constants of `changes`."""

    weight: float = 100.0


def height(observation):
    """Return the height [E] from observations [E, 2] of MountainCar or [E, 6] of Acrobot."""
    columns = observation.astype(np.float64).T
    if len(columns) == 2:
        x, v = columns  # x'' = 0.001 push - 0.0025 cos 3x
        return (1.0 + np.sin(3.0 * x) + v**2 / 2.0 * 3.0 / 0.0025) / 2.0
    cos_first, sin_first, cos_second, sin_second = columns[:4]
    tip = -cos_first - (cos_first * cos_second - sin_first * sin_second)  # -2 to 2
    return (tip + 2.0) / 4.0


def states(facts, settings: StatesSettings):
    """Return -1 per step, and the height."""
    return facts.env_reward + settings.weight * height(facts.next_observation)


def changes(facts, settings: ChangesSettings):
    """Return -1 per step, and the change of the height: over an episode its sum depends on the ends alone."""
    return facts.env_reward + settings.weight * (height(facts.next_observation) - height(facts.observation))
