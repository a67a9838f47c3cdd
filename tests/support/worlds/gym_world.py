"""Small environments of Gymnasium with known returns, and runs of them."""

import inspect
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from esper_ab.contracts.worker_order import RunSpec
from support.plans.worker_orders import run_order, settings_from
from workers.kinds.gymnasium.world import GymWorld
from workers.run.session import Session

USER_CODE = """

def make():
    return Walk()

class Unrepeatable(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=None)

class Wide(Walk):
    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (50_000,), np.float32)

    def __init__(self):
        super().__init__(limit=60)

    def step(self, action):
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, False, truncated, info

    def _seen(self):
        return np.full(50_000, self.place, dtype=np.float32)

class Params(msgspec.Struct):
    weight: float = 2.0

def reward(facts):
    return -np.abs(facts.next_observation[:, 0])

def weighted(facts, params: Params):
    return params.weight * facts.env_reward

def untyped(facts, params):
    return facts.env_reward

def place_of_info(facts):
    return np.array([info["place"] for info in facts.info])

def broken(facts):
    return facts.env_reward / 0.0

def late(facts):
    return np.where(facts.step == 40, np.nan, facts.env_reward)

def outcome(episode):
    return len(episode.actions) if episode.terminated else -1.0

def width(episode):
    return float(sum(len(one) for one in episode.observations))
"""


class Walk(gymnasium.Env[np.ndarray, int]):
    """A walk from a random start, one step up or down with noise.

    It ends at a distance of 3 from 0, and is truncated after `limit` steps.
    """

    observation_space = gymnasium.spaces.Box(-10.0, 10.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, limit: int = 9) -> None:
        self.limit = limit

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-0.5, 0.5))
        self.steps = 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        self.place += (1.0 if action == 1 else -1.0) + float(self.np_random.uniform(-0.2, 0.2))
        info = {"place": self.place, "text": "x"}
        return self._seen(), self.place, abs(self.place) > 3.0, self.steps >= self.limit, info

    def _seen(self) -> np.ndarray:
        return np.array([self.place, self.steps], dtype=np.float32)


def own_file(folder: Path, additions: str = "") -> Path:
    """Write a file with an environment, rewards and an outcome, and `additions`; return its path."""
    path = folder / "own.py"
    imports = "from __future__ import annotations\n\nimport gymnasium\nimport msgspec\nimport numpy as np\n\n\n"
    path.write_text(imports + inspect.getsource(Walk).replace("Any", "object") + USER_CODE + additions)
    return path


def gym_spec(task: str, **changes: Any) -> RunSpec:
    """Return the orders of a run of three short rollouts.

    `gym`, `policy`, `ppo` and `reward` change tables of its settings.
    """
    settings = settings_from(changes, {"policy": {"hidden": 8}, "reward": {"mode": "env"}})
    fields = {"task": task, "n_envs": 3, "episodes": 3, "steps": 20, "eval_reward_modes": ("env",)}
    return run_order(settings, **fields | changes)


def gym_session(task: str, **changes: Any) -> Session:
    spec = gym_spec(task, **changes)
    return Session(spec, GymWorld(spec))
