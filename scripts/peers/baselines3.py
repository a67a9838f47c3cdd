"""PPO of Stable-Baselines3 and RecurrentPPO of sb3-contrib, at their defaults or at the matched settings."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peers.learner import MATCHED_ENVS, MATCHED_HIDDEN, MATCHED_STEPS, Settings, Trained
from peers.tasks import make, returns

MATCHED = {
    "learning_rate": 1e-3, "n_steps": MATCHED_STEPS, "batch_size": MATCHED_ENVS * MATCHED_STEPS // 4, "n_epochs": 4,
    "gamma": 0.99, "gae_lambda": 0.95, "clip_range": 0.2, "ent_coef": 0.01, "vf_coef": 0.25, "max_grad_norm": 0.5,
}  # fmt: skip


def train(task: str, settings: Settings, rng_seed: int, steps: int, *, recurrent: bool) -> Trained:
    """Train for `steps` steps, rounded up to whole rollouts."""
    from sb3_contrib import RecurrentPPO
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv

    matched = settings == "matched"
    network: dict[str, Any] = {"net_arch": [MATCHED_HIDDEN, MATCHED_HIDDEN]}
    if recurrent:
        network = {"net_arch": [MATCHED_HIDDEN], "lstm_hidden_size": MATCHED_HIDDEN}
    model = (RecurrentPPO if recurrent else PPO)(
        "MlpLstmPolicy" if recurrent else "MlpPolicy",
        DummyVecEnv([partial(make, task)] * (MATCHED_ENVS if matched else 1)), seed=rng_seed, device="cpu",
        **({**MATCHED, "policy_kwargs": network} if matched else {}),
    )  # fmt: skip
    began = time.process_time()
    model.learn(total_timesteps=steps)
    cpu_s = time.process_time() - began

    def play(episodes: int, greedy: bool) -> list[float]:
        memory: Any = None
        first = np.ones(episodes, dtype=np.bool_)

        def policy(seen: NDArray[np.float32]) -> NDArray[Any]:
            nonlocal memory, first
            actions, memory = model.predict(seen, memory, first, deterministic=greedy)
            first = np.zeros(episodes, dtype=np.bool_)
            return actions

        return returns(task, policy, episodes)

    return Trained(steps=model.num_timesteps, cpu_s=cpu_s, play=play)
