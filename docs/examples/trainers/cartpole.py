"""PPO on CartPole-v1 in one file, in CleanRL's style: a script of its own, which knows nothing of esper-ab.

python cartpole.py --seed 1 --learning-rate 2.5e-3 --out /tmp/out
"""

import argparse
import json
import random
from pathlib import Path

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--learning-rate", type=float, default=2.5e-3)
parser.add_argument("--total-timesteps", type=int, default=20_000)
parser.add_argument("--num-envs", type=int, default=4)
parser.add_argument("--num-steps", type=int, default=128)
parser.add_argument("--track", action="store_true", help="log to Weights & Biases")
parser.add_argument("--out", type=Path, default=Path())
args = parser.parse_args()

random.seed(args.seed)
np.random.seed(args.seed)
torch.manual_seed(args.seed)
torch.set_num_threads(1)
if args.track:
    import wandb

    wandb.init(project="cartpole", config=vars(args))

actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
parameters = [*actor.parameters(), *critic.parameters()]
optimizer = torch.optim.Adam(parameters, lr=args.learning_rate, eps=1e-5)
envs = [gymnasium.make("CartPole-v1") for _ in range(args.num_envs)]
obs = torch.tensor(np.array([env.reset(seed=args.seed * 1000 + i)[0] for i, env in enumerate(envs)]))
returns = [0.0] * args.num_envs
gamma, gae_lambda, clip = 0.99, 0.95, 0.2

for update in range(args.total_timesteps // (args.num_envs * args.num_steps)):
    optimizer.param_groups[0]["lr"] = args.learning_rate * (
        1.0 - update * args.num_envs * args.num_steps / args.total_timesteps
    )
    batch = []
    for _ in range(args.num_steps):
        with torch.no_grad():
            policy, value = Categorical(logits=actor(obs)), critic(obs)[:, 0]
        action = policy.sample()
        rewards, ends, following = [], [], []
        for i, env in enumerate(envs):
            seen, reward, terminated, truncated, _ = env.step(int(action[i]))
            returns[i] += reward
            if terminated or truncated:
                if args.track:
                    wandb.log({"charts/episodic_return": returns[i]})
                returns[i], seen = 0.0, env.reset()[0]
            rewards.append(reward)
            ends.append(float(terminated or truncated))
            following.append(seen)
        batch.append((obs, action, policy.log_prob(action), value, torch.tensor(rewards), torch.tensor(ends)))
        obs = torch.tensor(np.array(following))
    with torch.no_grad():
        ahead, advantage, advantages = critic(obs)[:, 0], torch.zeros(args.num_envs), []
    for _, _, _, value, reward, end in reversed(batch):
        advantage = reward + gamma * ahead * (1 - end) - value + gamma * gae_lambda * (1 - end) * advantage
        advantages.insert(0, advantage)
        ahead = value
    b_obs, b_action, b_logprob, b_value = (torch.cat([row[k] for row in batch]) for k in range(4))
    b_advantage = torch.cat(advantages).float()
    b_return = b_advantage + b_value
    for _ in range(4):
        for part in torch.randperm(len(b_obs)).chunk(4):
            policy = Categorical(logits=actor(b_obs[part]))
            ratio = (policy.log_prob(b_action[part]) - b_logprob[part]).exp()
            scaled = (b_advantage[part] - b_advantage[part].mean()) / (b_advantage[part].std() + 1e-8)
            surrogate = torch.min(ratio * scaled, ratio.clamp(1 - clip, 1 + clip) * scaled).mean()
            value_loss = (critic(b_obs[part])[:, 0] - b_return[part]).square().mean()
            loss = -surrogate + 0.5 * value_loss - 0.01 * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.5)
            optimizer.step()

# What is compared: the return of the trained policy in fresh episodes, not one that it trained on.
evaluated = []
for episode in range(20):
    seen, total, over = envs[0].reset(seed=10**6 + args.seed * 1000 + episode)[0], 0.0, False
    while not over:
        with torch.no_grad():
            action = Categorical(logits=actor(torch.tensor(seen))).sample()
        seen, reward, terminated, truncated, _ = envs[0].step(int(action))
        total, over = total + reward, terminated or truncated
    evaluated.append(total)
(args.out / "result.json").write_text(json.dumps({"return": sum(evaluated) / len(evaluated)}))
