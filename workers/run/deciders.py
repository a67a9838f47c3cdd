"""Deciders of an episode: adapters of a controller that does not learn, and of a PPO agent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workers.controller import Controller
from workers.growth.rules.view import DecisionView
from workers.ppo.agent import PPOAgent

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class ControllerDecider:
    """Adapter of a controller, which ignores rewards."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def begin_episode(self, n_envs: int) -> None:
        self._controller.begin_episode(n_envs)

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        return self._controller.decide(view, uniforms)

    def exclude(self, envs: Bools) -> None:
        """Do nothing: a stopped environment's masks allow WAIT alone."""

    def reward(self, rewards: Floats, done: Bools) -> None:
        """Do nothing: a controller does not learn."""


class AgentDecider:
    """Adapter of a PPO agent; `greedy` takes the most probable valid action instead of sampling."""

    def __init__(self, agent: PPOAgent, *, greedy: bool = False) -> None:
        self._agent = agent
        self._greedy = greedy

    def begin_episode(self, n_envs: int) -> None:
        self._agent.begin_episode(n_envs)

    def decide(self, view: DecisionView, uniforms: Floats) -> Ints:
        return self._agent.act(view.observation, view.masks, uniforms, greedy=self._greedy)

    def exclude(self, envs: Bools) -> None:
        self._agent.exclude(envs)

    def reward(self, rewards: Floats, done: Bools) -> None:
        self._agent.reward(rewards, done)
