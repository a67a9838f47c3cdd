"""PPO of other libraries: PYTHON other_ppo.py LIBRARY TASK N_ENVS STEPS MINIBATCHES EPOCHS HIDDEN [RATE].

Started by ppo.py, it reads numbers of environment steps from stdin, trains for that many and prints the CPU seconds
used. Started by curves.py, with a learning rate, it reads "SEED ROLLOUTS", trains anew and prints, as JSON, the mean
return by rollout of the episodes that ended in it: first over an environment's, then over environments.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv


def main(library: str, task: str, *numbers: str) -> None:
    n_envs, steps, minibatches, epochs, hidden = map(int, numbers[:5])
    recurrent = library == "sb3_contrib"
    learner = getattr(importlib.import_module(library), "RecurrentPPO" if recurrent else "PPO")
    network = {"lstm_hidden_size": hidden} if recurrent else {"net_arch": [hidden, hidden]}

    def made(envs: list[Any], **more: Any) -> Any:
        return learner(
            "MlpLstmPolicy" if recurrent else "MlpPolicy", DummyVecEnv([lambda env=env: env for env in envs]),
            policy_kwargs=network, device="cpu", n_steps=steps, batch_size=n_envs * steps // minibatches,
            n_epochs=epochs, **more,
        )  # fmt: skip

    envs = [gymnasium.make(task, disable_env_checker=True) for _ in range(n_envs)]
    model = made(envs)
    for line in sys.stdin:
        if numbers[5:]:
            seed, rollouts = map(int, line.split())
            watched = [Monitor(env) for env in envs]
            model = made(watched, seed=seed, learning_rate=float(numbers[5]), ent_coef=0.01)
            model.learn(rollouts * n_envs * steps)
            print(json.dumps([_return(watched, at * steps, (at + 1) * steps) for at in range(rollouts)]), flush=True)
        else:
            began = time.process_time()
            model.learn(int(line), reset_num_timesteps=False)
            print(time.process_time() - began, flush=True)


def _return(envs: list[Monitor], first: int, last: int) -> float | None:
    ended = [(np.cumsum(env.get_episode_lengths()), np.array(env.get_episode_rewards())) for env in envs]
    means = [rewards[now].mean() for ends, rewards in ended if (now := (ends > first) & (ends <= last)).any()]
    return float(np.mean(means)) if means else None


if __name__ == "__main__":
    main(*sys.argv[1:])
