"""The tasks, with what counts as not worse: written down before the first run of record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray

Env = gymnasium.Env[Any, Any]
Policy = Callable[[NDArray[np.float32]], NDArray[Any]]  # observations [E, width] -> actions [E] or [E, dimensions]
NO_VELOCITY = "CartPoleNoVelocity-v1"
FIRST_EVALUATION_SEED = 10**6  # of resets; the same for every learner that is evaluated here


@dataclass(frozen=True)
class Task:
    """An environment, the margin of non-inferiority in its return, and which of our policies is held against it."""

    name: str
    margin: float
    memory: Literal["none", "lstm"] = "none"


TASKS = (
    Task("CartPole-v1", 25.0), Task(NO_VELOCITY, 25.0, memory="lstm"), Task("Acrobot-v1", 10.0),
    Task("Pendulum-v1", 50.0), Task("LunarLander-v3", 25.0),
)  # fmt: skip


def _position_and_angle(observation: NDArray[np.float32]) -> NDArray[np.float32]:
    return observation[[0, 2]]


def _without_velocities(**kwargs: Any) -> Env:
    env = gymnasium.make("CartPole-v1", **kwargs).unwrapped
    space = env.observation_space
    shown = gymnasium.spaces.Box(space.low[[0, 2]], space.high[[0, 2]], dtype=np.float32)
    return gymnasium.wrappers.TransformObservation(env, _position_and_angle, shown)


def register() -> None:
    """Have Gymnasium know the task of our own."""
    if NO_VELOCITY not in gymnasium.registry:
        gymnasium.register(NO_VELOCITY, entry_point=_without_velocities, max_episode_steps=500)


def make(task: str) -> Env:
    """Make one environment, with its time limit."""
    register()
    return gymnasium.make(task, disable_env_checker=True)


def returns(task: str, policy: Policy, episodes: int) -> list[float]:
    """Play whole episodes side by side; the policy keeps what it needs to remember of each."""
    envs = [make(task) for _ in range(episodes)]
    seen = [env.reset(seed=FIRST_EVALUATION_SEED + index)[0] for index, env in enumerate(envs)]
    totals, alive = [0.0] * episodes, [True] * episodes
    while any(alive):
        actions = policy(np.stack(seen).astype(np.float32))
        for index, env in enumerate(envs):
            if alive[index]:
                seen[index], reward, terminated, truncated, _ = env.step(actions[index])
                totals[index] += float(reward)
                alive[index] = not (terminated or truncated)
    return totals
