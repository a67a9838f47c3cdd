"""Bandits side by side: arm i of k pays 1 with probability (i + 1) / (k + 1). All random numbers have addresses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.rng import RngPath
from workers.arrays import Bools, Floats, Floats32, Ints, all_false, all_true
from workers.environments import Decisions, Ended, Happened


@dataclass(frozen=True, kw_only=True)
class BanditSeen:
    """State before pull `step`."""

    masks: ClassVar[None] = None  # every arm can be pulled
    step: int  # from 1
    alive: Bools  # [E]
    observation: Floats32  # [E, arms]: payments so far by arm, per step of the episode


class BanditEnvironments:
    """The bandits of one run: call `begin`, then `step` until none is alive."""

    def __init__(self, arms: int, steps: int, devices: Sequence[str]) -> None:
        self.n_envs = len(devices)
        self._chances = np.arange(1, arms + 1) / (arms + 1)
        self._steps = steps
        self._devices = devices

    def begin(self, paths: Sequence[RngPath]) -> BanditSeen:
        """Start an episode, with one rng address per environment."""
        draws = [(path / "pulls").generator().random((self._steps, 2)) for path in paths]
        self._draws: Floats = np.stack(draws, axis=1)  # [steps, E, 2]: for the decision and for the payment
        self._arms: list[Ints] = []  # [E] by step
        self._paid: Floats32 = np.zeros((self.n_envs, len(self._chances)), dtype=np.float32)
        return self._seen()

    def uniforms(self) -> Floats:
        """Return the random numbers [E, 1] of the next decision."""
        numbers: Floats = self._draws[len(self._arms), :, :1]
        return numbers

    def step(self, decisions: Decisions) -> tuple[Happened[Floats], BanditSeen]:
        """Pull an arm of every bandit; the facts are the payments [E]."""
        arms: Ints = decisions[:, 0]
        payments: Floats = (self._draws[len(self._arms), :, 1] < self._chances[arms]).astype(np.float64)
        self._paid[np.arange(self.n_envs), arms] += payments / self._steps
        self._arms.append(arms)
        ended_mask = all_true(self.n_envs) if len(self._arms) == self._steps else all_false(self.n_envs)
        return Happened(facts=payments, ended=ended_mask), self._seen()

    def ends(self) -> Ended:
        """Return the expected payment of the pulled arms in percent, and the share of the best arm."""
        arms = np.stack(self._arms)  # [steps, E]
        expected = 100.0 * self._chances[arms].mean(axis=0)
        best_shares = 100.0 * (arms == len(self._chances) - 1).mean(axis=0)
        episodes = [
            EnvEpisode(
                env=env,
                device=device,
                steps=self._steps,
                outcome=float(expected[env]),
                reward_sum=None,
                failed=False,
                measures={"best_arm": float(best_shares[env])},
            )
            for env, device in enumerate(self._devices)
        ]
        return Ended(tuple(episodes), ())

    def carried(self) -> dict[str, Any]:
        """Return {}, because nothing outlives an episode."""
        return {}

    def take_up(self, carried: dict[str, Any]) -> Bools:
        """Return all False, because no environment continues."""
        return all_false(self.n_envs)

    def _seen(self) -> BanditSeen:
        pull_count = len(self._arms)
        alive_mask = all_true(self.n_envs) if pull_count < self._steps else all_false(self.n_envs)
        return BanditSeen(step=pull_count + 1, alive=alive_mask, observation=self._paid.copy())
