"""PPO of this project, or of Stable-Baselines3, with the same settings, on one environment of Gymnasium."""

import json
import subprocess
import sys
from pathlib import Path

N_ENVS = 8
ROLLOUT = 128  # steps per environment and rollout
EPOCHS = 4
MINIBATCHES = 4
RATE = 1e-3
CLIP = 0.2
GAMMA = 0.99
GAE_LAMBDA = 0.95
ENTROPY = 0.01
MAX_GRAD_NORM = 0.5
HIDDEN = 64
EVAL_EPISODES = 32


def train(seed: int, out: str, library: str, task: str, steps: int) -> float:
    """Train one policy and return the mean return of its sampled actions in fresh episodes."""
    if library == "sb3":
        return stable_baselines3(seed, task, steps)
    return esper_ab(seed, Path(out), task, steps)


def esper_ab(seed: int, out: Path, task: str, steps: int) -> float:
    """Return the outcome of one run of `esper-ab launch`, in a folder of its own."""
    settings = {
        "ppo.epochs": EPOCHS,
        "ppo.minibatches": MINIBATCHES,
        "ppo.lr": RATE,
        "ppo.lr_end": 1.0,
        "ppo.clip": CLIP,
        "ppo.gamma": GAMMA,
        "ppo.gae_lambda": GAE_LAMBDA,
        "ppo.entropy_coef": ENTROPY,
        "ppo.entropy_coef_end": ENTROPY,
        "ppo.max_grad_norm": MAX_GRAD_NORM,
        "ppo.target_kl": 1e6,
        "policy.memory": "none",
        "policy.hidden": HIDDEN,
        "gym.rollout": "continues",
        "steps": ROLLOUT,
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words += ["--groups", "env", "--task", f"gym:{task}", "--seeds", "1", "--rng-seed", str(seed)]
    words += ["--n-envs", str(N_ENVS), "--total-timesteps", str(steps), "--eval-episodes", str(EVAL_EPISODES)]
    words += ["--devices", "cpu:0", "--margin", "1", "--output-dir", str(out), "--name", "run", "--quiet", "--yes"]
    subprocess.run([sys.executable, "-m", "esper_ab", "launch", *words], check=True)
    (run,) = json.loads((out / "run" / "verdict.json").read_text())["runs"]
    return float(run["outcome"])


def stable_baselines3(seed: int, task: str, steps: int) -> float:
    """Return the outcome of its PPO, whose other settings are its defaults."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy",
        make_vec_env(task, N_ENVS, seed=seed),
        n_steps=ROLLOUT,
        batch_size=N_ENVS * ROLLOUT // MINIBATCHES,
        n_epochs=EPOCHS,
        learning_rate=RATE,
        clip_range=CLIP,
        gamma=GAMMA,
        gae_lambda=GAE_LAMBDA,
        ent_coef=ENTROPY,
        max_grad_norm=MAX_GRAD_NORM,
        policy_kwargs={"net_arch": [HIDDEN, HIDDEN]},
        seed=seed,
        device="cpu",
    )
    model.learn(steps)
    fresh = make_vec_env(task, N_ENVS, seed=seed + N_ENVS)
    mean, _ = evaluate_policy(model, fresh, n_eval_episodes=EVAL_EPISODES, deterministic=False)
    return float(mean)
