import argparse

from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
parser.add_argument("--learning-rate", type=float)
parser.add_argument("--log-dir")
arguments = parser.parse_args()

envs, eval_env = (make_vec_env("CartPole-v1", seed=arguments.seed + more) for more in (0, 1000))
evaluation = EvalCallback(eval_env, n_eval_episodes=10, eval_freq=1000, log_path=arguments.log_dir, verbose=0)
model = PPO("MlpPolicy", envs, arguments.learning_rate, n_steps=256, seed=arguments.seed, device="cpu")
model.learn(3000, callback=evaluation)
