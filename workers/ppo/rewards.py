"""Changes rewards before advantages are computed: divided by a running SD, and clipped.

Reward scaling (Engstrom et al. 2020, arXiv:2005.12729, section 3) divides by the standard deviation of the rolling
discounted sum of rewards of all steps so far, and subtracts nothing. The moments are those after the rollout that is
scaled, and the sum goes on where an episode does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from esper_ab.contracts.settings import PPOSettings
from workers.arrays import Bools, Floats
from workers.ppo.normalise import ReturnNormaliser


class RewardScale:
    """The running moments of discounted sums of rewards, and the sums of episodes that continue."""

    def __init__(self, settings: PPOSettings) -> None:
        self._settings = settings
        self.sums = ReturnNormaliser()
        self.open_sums: Floats | None = None  # [E], of environments that continue in the next rollout; 0 elsewhere

    def changed(self, rewards: Floats, ended_mask: Bools, valid_mask: Bools) -> Floats:
        """Return the rewards [T, E] of a rollout as the policy learns from them.

        `ended_mask` [T, E] marks steps that were the last of their episode.
        """
        if self._settings.reward_scaling:
            self.sums.moments.merge(self._discounted_sums(rewards, ended_mask)[valid_mask][:, None])
            rewards = rewards / (self.sums.std or 1.0)  # as they are until sums have differed
        if self._settings.reward_clip:
            rewards = np.clip(rewards, -self._settings.reward_clip, self._settings.reward_clip)
        return rewards

    def forget(self, envs: Bools) -> None:
        """Clear the sums of the environments in the mask `envs` [E], whose episodes do not continue."""
        if self.open_sums is not None:
            self.open_sums[envs] = 0.0

    def state(self) -> dict[str, Any]:
        """Return the state between two rollouts; {} without reward scaling."""
        if not self._settings.reward_scaling:
            return {}
        state: dict[str, Any] = {"reward_sums": self.sums.moments.state()}
        if self.open_sums is not None:
            state["open_reward_sums"] = self.open_sums.copy()
        return state

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, from a dictionary that has more."""
        if self._settings.reward_scaling:
            self.sums.moments.load(state["reward_sums"])
        if "open_reward_sums" in state:
            self.open_sums = np.asarray(state["open_reward_sums"]).copy()

    def _discounted_sums(self, rewards: Floats, ended_mask: Bools) -> Floats:
        """Return the sum after every step [T, E], and keep the last ones for episodes that go on."""
        sums = np.empty_like(rewards)
        running_sum = np.zeros(rewards.shape[1]) if self.open_sums is None else self.open_sums
        for step, step_rewards in enumerate(rewards):
            sums[step] = self._settings.gamma * running_sum + step_rewards
            running_sum = np.where(ended_mask[step], 0.0, sums[step])
        self.open_sums = running_sum if running_sum.any() else None
        return sums
