"""A run of Gymnasium environments: what they are made by, their rewards and their outcome."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from esper_ab.contracts.kinds import is_own_outcome
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.settings import RewardSettings
from workers.arrays import Floats
from workers.controllers.random import Random
from workers.environments import Controller, Decisions, Stopwatch
from workers.gymnasium_task.environments import GymEnvironments, GymSeen, GymSpec
from workers.gymnasium_task.facts import GymEpisode
from workers.gymnasium_task.making import codec_of, env_return, maker, outcome_of, reward_of
from workers.user_rewards.user_code import Load, as_it_is

RETURN = Measure(name="env_return", label="return", better="higher")
LENGTH = Measure(name="length", label="episode length", unit="steps", low=0.0)
NO_LIMIT = 10_000_000


def measures(outcome: str) -> tuple[Measure, ...]:
    """Return what is measured beside an outcome."""
    return (*((RETURN,) if outcome else ()), LENGTH)


def measured(outcome: str, episode: GymEpisode) -> dict[str, float | None]:
    """Measure an episode, by the names of `measures`."""
    own: dict[str, float | None] = {RETURN.name: env_return(episode)} if outcome else {}
    return {**own, LENGTH.name: float(len(episode.actions))}


class GymWorld:
    """The environments of one run, by its orders."""

    def __init__(self, spec: RunSpec, loader: Load = as_it_is) -> None:
        self._spec, self._load, gym = spec, loader, spec.settings.gym
        self._make = maker(spec.task, loader)
        self._codec, _ = codec_of(self._make)
        self._outcome = outcome_of(spec.outcome, loader)
        self.spaces = self._codec.spaces
        self.evaluation_steps = spec.steps if gym.rollout == "episodes" else gym.episode_steps or NO_LIMIT

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole: bool
    ) -> GymEnvironments:
        """Make the first `n_envs` environments of the run for rollouts of `steps`; `whole`: each is an episode."""
        rollout = "episodes" if whole else self._spec.settings.gym.rollout
        spec = GymSpec(
            make=self._make, codec=self._codec, outcome=self._outcome,
            keeps_observations=is_own_outcome(self._spec.outcome), worst=self._spec.outcome_worst,
            measures=partial(measured, self._spec.outcome), steps=steps, resets=rollout != "episodes",
            continues=rollout == "continues", repeats=self._spec.repeats, devices=self._spec.env_devices[:n_envs],
        )
        return GymEnvironments(spec, stopwatch)

    def reward(self, settings: RewardSettings) -> Callable[..., Floats]:
        """Return the function of a reward mode with its constants bound."""
        return reward_of(settings, self._load)


class RandomActions(Controller[GymSeen]):
    """Uniform over the choices of every head, or over the numbers of a box; normal where a box has no bounds."""

    _heads = Random()

    def decide(self, view: GymSeen, uniforms: Floats) -> Decisions:
        """Return decisions [E, heads or dimensions]."""
        if view.masks.sizes:
            return self._heads.decide(view, uniforms)
        box = view.codec
        bounded = np.isfinite(box.low) & np.isfinite(box.high)
        low, high = np.where(bounded, box.low, 0.0), np.where(bounded, box.high, 0.0)
        normal = torch.special.ndtri(torch.from_numpy(np.maximum(uniforms, 2.0**-54))).numpy()
        even = np.floor(uniforms * (high - low + 1.0)) if box.integers else (high - low) * uniforms
        numbers: Floats = np.where(bounded, low + even, normal)
        return numbers
