"""A policy gradient on CartPole-v1 with the habits of CleanRL's single files, and without a flag for a folder."""

import argparse
import random
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical
from torch.utils.tensorboard import SummaryWriter

parser = argparse.ArgumentParser()
parser.add_argument("--exp-name", default="reinforce")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--track", action="store_true")
parser.add_argument("--env-id", default="CartPole-v1")
parser.add_argument("--total-timesteps", type=int, default=500_000)
parser.add_argument("--learning-rate", type=float, default=2.5e-4)
parser.add_argument("--num-envs", type=int, default=4)
parser.add_argument("--num-steps", type=int, default=128)
args = parser.parse_args()

run_name = f"{args.env_id}__{args.exp_name}__{args.seed}__{int(time.time())}"
writer = SummaryWriter(f"runs/{run_name}")
writer.add_text("hyperparameters", str(vars(args)))
random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)

makers = [lambda: gym.wrappers.RecordEpisodeStatistics(gym.make(args.env_id)) for _ in range(args.num_envs)]
envs = gym.vector.SyncVectorEnv(makers)
actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(actor.parameters(), lr=args.learning_rate, eps=1e-5)
observations, _ = envs.reset(seed=args.seed)
global_step = 0
while global_step < args.total_timesteps:
    log_probabilities, rewards, ends = [], [], []
    for _ in range(args.num_steps):
        global_step += args.num_envs
        choices = Categorical(logits=actor(torch.as_tensor(observations, dtype=torch.float32)))
        actions = choices.sample()
        observations, reward, terminated, truncated, infos = envs.step(actions.numpy())
        log_probabilities.append(choices.log_prob(actions))
        rewards.append(torch.as_tensor(reward, dtype=torch.float32))
        ends.append(torch.as_tensor(terminated | truncated))
        for env in np.flatnonzero(infos.get("_episode", [])):
            episodic_return = float(infos["episode"]["r"][env])
            print(f"global_step={global_step}, episodic_return={episodic_return}")
            writer.add_scalar("charts/episodic_return", episodic_return, global_step)
    returns = [torch.zeros(args.num_envs)]
    for reward, end in zip(reversed(rewards), reversed(ends), strict=True):
        returns.append(reward + 0.99 * returns[-1] * ~end)
    advantages = torch.stack(returns[:0:-1])
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    loss = -(torch.stack(log_probabilities) * advantages).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    writer.add_scalar("losses/policy_loss", loss.item(), global_step)
envs.close()
writer.close()
