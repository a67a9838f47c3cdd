"""PPO of Stable-Baselines3 on CartPole-v1, at one learning rate or another (`pip install stable-baselines3`)."""

import io

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

import esper_ab


class Settings(esper_ab.TrainerSettings):
    """What groups may differ in: `--group fast:trainer.lr=1e-3`."""

    lr: float = 3e-4
    steps: int = 4096  # between two points
    rollout: int = 2048  # steps before an update
    env: str = "CartPole-v1"


def train(run):
    settings = run.settings
    torch.set_num_threads(1)
    env = Monitor(gymnasium.make(settings.env))
    if run.state is None:
        made = {"learning_rate": settings.lr, "n_steps": settings.rollout, "seed": run.seed("weights")}
        model = PPO("MlpPolicy", env, device="cpu", **made)
    else:
        model = PPO.load(io.BytesIO(run.state), env=env, device="cpu")
    for point in range(run.point, run.points):
        # A fresh seed and a fresh episode at every point: what comes after it depends on the saved model alone.
        model.set_random_seed(run.seed("train", point))
        before = len(env.get_episode_rewards())
        model.learn(settings.steps, reset_num_timesteps=True)
        run.alive(settings.steps)
        returns = env.get_episode_rewards()[before:]
        file = io.BytesIO()
        model.save(file)
        yield run.Point({"return": sum(returns) / len(returns)}, state=file.getvalue())


def evaluate(run, state):
    model = PPO.load(io.BytesIO(state), device="cpu")
    env = Monitor(gymnasium.make(run.settings.env))
    env.reset(seed=run.seed("evaluate", "resets"))
    model.set_random_seed(run.seed("evaluate", "actions"))
    returns, _ = evaluate_policy(
        model, env, n_eval_episodes=run.eval_episodes, deterministic=False, return_episode_rewards=True
    )
    return returns
