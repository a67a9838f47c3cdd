"""Our PPO, through the very session that a worker runs."""

from __future__ import annotations

import time
from typing import Any, Literal

from esper_ab.contracts.measures import episode_sizes
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.settings import (
    Arithmetic,
    GroupSettings,
    GymSettings,
    PolicySettings,
    PPOSettings,
    RewardSettings,
)
from peers.learner import MATCHED_ENVS, MATCHED_HIDDEN, MATCHED_STEPS, Settings, Trained
from peers.tasks import register
from workers.gymnasium_task.world import GymWorld
from workers.run.policy_file import SavedPolicy
from workers.run.session import Session

DEFAULT_ENVS, DEFAULT_STEPS, DEFAULT_ROLLOUTS = 8, 1000, 50  # of `launch` with an environment of Gymnasium
MATCHED_PPO = PPOSettings(
    lr=1e-3, epochs=4, minibatches=4, clip=0.2, gamma=0.99, gae_lambda=0.95, entropy_coef=0.01, entropy_coef_end=0.01,
    value_coef=0.5, max_grad_norm=0.5, target_kl=1e9,
)  # fmt: skip


def train(
    task: str, settings: Settings, rng_seed: int, steps: int, *, memory: Literal["none", "lstm"], **changes: Any
) -> Trained:
    """Train until `steps` steps are done; `changes` of the spec are for tuning."""
    register()
    spec = _spec(task, settings, rng_seed, steps, memory)
    spec = RunSpec(**{name: changes.get(name, getattr(spec, name)) for name in RunSpec.__struct_fields__})
    session, done, episode = Session(spec, GymWorld(spec)), 0, 0
    began = time.process_time()
    while done < steps:
        done += sum(env.steps for env in session.train(episode, _quiet, _quiet).envs)
        episode += 1
    cpu_s = time.process_time() - began

    def play(episodes: int, greedy: bool) -> list[float]:
        decider = SavedPolicy(spec, session.agent).decider(greedy=greedy)
        played = [
            session.evaluation_episode(number, size, decider, _quiet).envs
            for number, size in enumerate(episode_sizes(episodes, spec.n_envs))
        ]
        return [env.outcome for envs in played for env in envs]

    return Trained(steps=done, cpu_s=cpu_s, play=play)


def _spec(task: str, settings: Settings, rng_seed: int, steps: int, memory: Literal["none", "lstm"]) -> RunSpec:
    matched = settings == "matched"
    n_envs, of_rollout = (MATCHED_ENVS, MATCHED_STEPS) if matched else (DEFAULT_ENVS, DEFAULT_STEPS)
    group = GroupSettings(
        policy=PolicySettings(hidden=MATCHED_HIDDEN, memory=memory), ppo=MATCHED_PPO if matched else PPOSettings(),
        reward=RewardSettings(mode="env"), gym=GymSettings(rollout="continues" if matched else "episodes"),
    )
    ref = RunRef(name="ours/0", group_id="ours", replicate=0, reward_mode="env", controller="ppo", device="cpu:0")
    return RunSpec(
        ref=ref, experiment_digest="", rng_seed=rng_seed, rng_label="", task=f"gym:{task}", data_dir="", slots=(),
        n_envs=n_envs, episodes=-(-steps // (n_envs * of_rollout)) if matched else DEFAULT_ROLLOUTS, steps=of_rollout,
        eval_episodes=n_envs, eval_reward_modes=(), env_devices=("cpu:0",) * n_envs, settings=group,
        arithmetic=Arithmetic(), telemetry=False, policy_file="ours.pt", log_file="ours.log",
    )


def _quiet(_step: int) -> None:
    pass
