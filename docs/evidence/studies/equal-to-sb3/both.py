"""PPO of this project, or of Stable-Baselines3, with all settings equal to the latter's defaults or to those below."""

import json
import subprocess
import sys
from pathlib import Path

TASK = "CartPole-v1"
STEPS = 20_480
N_ENVS = 8
ROLLOUT = 128  # steps per environment and rollout
EPOCHS = 4
MINIBATCHES = 4
RATE = 1e-3
ENTROPY = 0.01
EVAL_EPISODES = 32
# What differs between the defaults of the two.
AS_STABLE_BASELINES3 = {
    "ppo.clip": 0.2,
    "ppo.gamma": 0.99,
    "ppo.gae_lambda": 0.95,
    "ppo.max_grad_norm": 0.5,
    "ppo.value_coef": 1.0,  # of half the squared error, where Stable-Baselines3 has 0.5 of the whole
    "ppo.target_kl": 1e6,  # no limit
    "ppo.normalise_advantages": "minibatch",
    "ppo.normalise_returns": "false",
    "policy.memory": "none",
    "policy.hidden": 64,
    "policy.activation": "tanh",
    "policy.layer_norm": "false",
    "policy.trunk": "separate",
    "policy.init": "orthogonal",
    "policy.actor_gain": 0.01,
    "policy.critic_gain": 1.0,
    "policy.normalise_observations": "false",
    "gym.rollout": "continues",
}


def train(seed: int, out: str, library: str) -> float:
    """Train one policy and return the mean return of its sampled actions in fresh episodes."""
    if library == "sb3":
        return stable_baselines3(seed)
    return esper_ab(seed, Path(out))


def esper_ab(seed: int, out: Path) -> float:
    """Return the outcome of one run of `esper-ab launch`, in a folder of its own."""
    settings = AS_STABLE_BASELINES3 | {
        "ppo.epochs": EPOCHS,
        "ppo.minibatches": MINIBATCHES,
        "ppo.lr": RATE,
        "ppo.lr_end": 1.0,
        "ppo.entropy_coef": ENTROPY,
        "ppo.entropy_coef_end": ENTROPY,
        "steps": ROLLOUT,
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    words += ["--groups", "env", "--task", f"gym:{TASK}", "--seeds", "1", "--rng-seed", str(seed)]
    words += ["--n-envs", str(N_ENVS), "--total-timesteps", str(STEPS), "--eval-episodes", str(EVAL_EPISODES)]
    words += ["--devices", "cpu:0", "--margin", "1", "--output-dir", str(out), "--name", "run", "--quiet", "--yes"]
    subprocess.run([sys.executable, "-m", "esper_ab", "launch", *words], check=True)
    (run,) = json.loads((out / "run" / "verdict.json").read_text())["runs"]
    return float(run["outcome"])


def stable_baselines3(seed: int) -> float:
    """Return the outcome of its PPO, whose other settings are its defaults."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(1)
    model = PPO(
        "MlpPolicy",
        make_vec_env(TASK, N_ENVS, seed=seed),
        n_steps=ROLLOUT,
        batch_size=N_ENVS * ROLLOUT // MINIBATCHES,
        n_epochs=EPOCHS,
        learning_rate=RATE,
        ent_coef=ENTROPY,
        seed=seed,
        device="cpu",
    )
    model.learn(STEPS)
    fresh = make_vec_env(TASK, N_ENVS, seed=seed + N_ENVS)
    mean, _ = evaluate_policy(model, fresh, n_eval_episodes=EVAL_EPISODES, deterministic=False)
    return float(mean)
