"""PPO in one file, with the details of Huang et al. 2022 ("The 37 Implementation Details of PPO") that CleanRL has.

Of those for continuous actions: observations and rewards normalised by running moments, clipped at 10. As in CleanRL,
an episode that is cut off counts as one that ended.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical, Normal

from peers.learner import MATCHED_ENVS, MATCHED_HIDDEN, MATCHED_STEPS, Settings, Trained
from peers.tasks import make, returns

_CLIP_SEEN = 10.0
Actions = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Constants:
    """Of one training; the defaults are CleanRL's of `ppo.py`, for choices."""

    envs: int = 4
    steps: int = 128
    lr: float = 2.5e-4
    anneal: bool = True
    minibatches: int = 4
    epochs: int = 4
    entropy: float = 0.01
    clip_values: bool = True
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    value: float = 0.5
    grad_norm: float = 0.5


CONTINUOUS = Constants(envs=1, steps=2048, lr=3e-4, minibatches=32, epochs=10, entropy=0.0)
MATCHED = Constants(envs=MATCHED_ENVS, steps=MATCHED_STEPS, lr=1e-3, anneal=False, clip_values=False)


def layer(inputs: int, outputs: int, gain: float = math.sqrt(2.0)) -> nn.Linear:
    """Make a linear layer with orthogonal weights and zero bias."""
    made = nn.Linear(inputs, outputs)
    nn.init.orthogonal_(made.weight, gain)
    nn.init.zeros_(made.bias)
    return made


class Agent(nn.Module):
    """Actor and critic, networks of their own with two hidden layers."""

    def __init__(self, width: int, actions: int, *, continuous: bool) -> None:
        super().__init__()
        hidden = MATCHED_HIDDEN
        inner = [(layer(width, hidden), nn.Tanh(), layer(hidden, hidden), nn.Tanh()) for _ in range(2)]
        self.actor = nn.Sequential(*inner[0], layer(hidden, actions, 0.01))
        self.critic = nn.Sequential(*inner[1], layer(hidden, 1, 1.0))
        self.log_std = nn.Parameter(torch.zeros(actions)) if continuous else None

    def distribution(self, seen: Tensor) -> Categorical | Normal:
        """Return what actions are drawn from."""
        out = self.actor(seen)
        return Categorical(logits=out) if self.log_std is None else Normal(out, self.log_std.exp().expand_as(out))


def joint(numbers: Tensor) -> Tensor:
    """Sum over the dimensions of an action, where it has any."""
    return numbers.sum(-1) if numbers.dim() > 1 else numbers


class Running:
    """Mean and variance per column of all rows so far."""

    def __init__(self, width: int) -> None:
        self.mean, self.var, self.count = np.zeros(width), np.ones(width), 1e-4

    def add(self, rows: NDArray[Any]) -> None:
        """Take in rows [N, width] (Chan, Golub, LeVeque 1979)."""
        count, delta = len(rows), rows.mean(0) - self.mean
        total = self.count + count
        squares = self.var * self.count + rows.var(0) * count + delta**2 * self.count * count / total
        self.mean, self.var, self.count = self.mean + delta * count / total, squares / total, total


class Training:
    """One training, step by step."""

    def __init__(self, task: str, constants: Constants, rng_seed: int) -> None:
        torch.manual_seed(rng_seed)
        self.envs, self.constants = [make(task) for _ in range(constants.envs)], constants
        space = self.envs[0].action_space
        self.continuous = isinstance(space, gymnasium.spaces.Box)
        width = int(np.prod(self.envs[0].observation_space.shape))
        actions = int(np.prod(space.shape)) if self.continuous else int(space.n)
        self.limits = (space.low, space.high) if self.continuous else (0, 0)
        self.agent = Agent(width, actions, continuous=self.continuous)
        self.optimiser = torch.optim.Adam(self.agent.parameters(), lr=constants.lr, eps=1e-5)
        self.seen_moments, self.return_moments = Running(width), Running(1)
        self.discounted = np.zeros(constants.envs)
        raw = [env.reset(seed=rng_seed * 1000 + index)[0] for index, env in enumerate(self.envs)]
        self.seen = self.shown(np.stack(raw), learn=True)
        self.ended = torch.zeros(constants.envs)

    def shown(self, raw: NDArray[Any], *, learn: bool) -> Tensor:
        """Return what the networks see of observations [E, width]."""
        if self.continuous:
            if learn:
                self.seen_moments.add(raw)
            scaled = (raw - self.seen_moments.mean) / np.sqrt(self.seen_moments.var + 1e-8)
            raw = np.clip(scaled, -_CLIP_SEEN, _CLIP_SEEN)
        return torch.as_tensor(raw, dtype=torch.float32)

    def given(self, actions: Tensor) -> NDArray[Any]:
        """Return what environments are given."""
        found = actions.numpy()
        return np.clip(found, *self.limits) if self.continuous else found

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Step every environment; return scaled rewards, what is seen then, and which ended (and began anew)."""
        rewards, raw, ended = np.zeros(len(self.envs)), [], np.zeros(len(self.envs))
        for index, (env, action) in enumerate(zip(self.envs, self.given(actions), strict=True)):
            seen, reward, terminated, truncated, _ = env.step(action)
            rewards[index], ended[index] = float(reward), terminated or truncated
            raw.append(env.reset()[0] if terminated or truncated else seen)
        if self.continuous:
            self.discounted = self.discounted * self.constants.gamma + rewards
            self.return_moments.add(self.discounted[:, None])
            self.discounted = self.discounted * (1.0 - ended)
            scaled = rewards / np.sqrt(self.return_moments.var[0] + 1e-8)
            rewards = np.clip(scaled, -_CLIP_SEEN, _CLIP_SEEN)
        found = (torch.as_tensor(one, dtype=torch.float32) for one in (rewards, ended))
        return next(found), self.shown(np.stack(raw), learn=True), next(found)

    @torch.no_grad()
    def rollout(self) -> dict[str, Tensor]:
        """Play `steps` steps; return them flat, with advantages and returns (Schulman et al. 2016)."""
        names = ("seen", "action", "log_prob", "value", "reward", "ended")
        kept: dict[str, list[Tensor]] = {name: [] for name in names}
        for _ in range(self.constants.steps):
            distribution = self.agent.distribution(self.seen)
            action, value = distribution.sample(), self.agent.critic(self.seen)[:, 0]
            reward, seen, ended = self.step(action)
            now = (self.seen, action, joint(distribution.log_prob(action)), value, reward, ended)
            for name, part in zip(kept, now, strict=True):
                kept[name].append(part)
            self.seen = seen
        gamma, ahead, running = self.constants.gamma, self.agent.critic(self.seen)[:, 0], torch.zeros(len(self.envs))
        advantages = []
        for value, reward, ended in zip(*(reversed(kept[name]) for name in ("value", "reward", "ended")), strict=True):
            running = reward + (1 - ended) * gamma * (ahead + self.constants.gae_lambda * running) - value
            advantages.append(running)
            ahead = value
        batch = {name: torch.cat(parts) for name, parts in kept.items()}
        batch["advantage"] = torch.cat(advantages[::-1])
        return {**batch, "return": batch["advantage"] + batch["value"]}

    def update(self, batch: dict[str, Tensor]) -> None:
        """Several epochs of minibatches over a rollout."""
        constants, count = self.constants, len(batch["seen"])
        for _ in range(constants.epochs):
            for rows in torch.randperm(count).chunk(constants.minibatches):
                loss = self.loss({name: part[rows] for name, part in batch.items()})
                self.optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(self.agent.parameters(), constants.grad_norm)
                self.optimiser.step()

    def loss(self, part: dict[str, Tensor]) -> Tensor:
        """Return the loss of a minibatch: clipped surrogate, value loss, entropy."""
        constants = self.constants
        distribution = self.agent.distribution(part["seen"])
        ratio = (joint(distribution.log_prob(part["action"])) - part["log_prob"]).exp()
        advantage = (part["advantage"] - part["advantage"].mean()) / (part["advantage"].std() + 1e-8)
        clipped = ratio.clamp(1 - constants.clip, 1 + constants.clip)
        surrogate = torch.min(ratio * advantage, clipped * advantage).mean()
        value = self.agent.critic(part["seen"])[:, 0]
        error = (value - part["return"]).square()
        if constants.clip_values:
            near = part["value"] + (value - part["value"]).clamp(-constants.clip, constants.clip)
            error = torch.max(error, (near - part["return"]).square())
        entropy = joint(distribution.entropy()).mean()
        return -surrogate + constants.value * 0.5 * error.mean() - constants.entropy * entropy


def train(task: str, settings: Settings, rng_seed: int, steps: int) -> Trained:
    """Train for `steps` steps, rounded up to whole rollouts."""
    continuous = isinstance(make(task).action_space, gymnasium.spaces.Box)
    constants = MATCHED if settings == "matched" else CONTINUOUS if continuous else Constants()
    training = Training(task, constants, rng_seed)
    of_rollout = constants.envs * constants.steps
    updates = -(-steps // of_rollout)
    began = time.process_time()
    for update in range(updates):
        if constants.anneal:
            training.optimiser.param_groups[0]["lr"] = constants.lr * (1.0 - update / updates)
        training.update(training.rollout())
    cpu_s = time.process_time() - began

    def play(episodes: int, greedy: bool) -> list[float]:
        @torch.no_grad()
        def policy(raw: NDArray[np.float32]) -> NDArray[Any]:
            distribution = training.agent.distribution(training.shown(raw, learn=False))
            return training.given(distribution.mode if greedy else distribution.sample())

        return returns(task, policy, episodes)

    return Trained(steps=updates * of_rollout, cpu_s=cpu_s, play=play)
