"""The PPO agent as a controller of episodes."""

from __future__ import annotations

from workers.arrays import Bools, Floats
from workers.controller import Controller
from workers.environments import Cut, Decisions, Seen
from workers.ppo.agent import PPOAgent


class AgentDecider(Controller[Seen]):
    """Adapter of a PPO agent; `greedy` takes the most probable action instead of sampling."""

    def __init__(self, agent: PPOAgent, *, greedy: bool = False) -> None:
        self._agent = agent
        self._greedy = greedy

    def begin_episode(self, n_envs: int) -> None:
        self._agent.begin_episode(n_envs)

    def decide(self, view: Seen, uniforms: Floats) -> Decisions:
        return self._agent.act(view.observation, view.masks, uniforms, greedy=self._greedy)

    def exclude(self, envs: Bools) -> None:
        self._agent.exclude(envs)

    def reward(self, rewards: Floats, done: Bools, cut: Cut | None = None) -> None:
        self._agent.reward(rewards, done, cut)
