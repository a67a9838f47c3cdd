"""Plays one episode, step by step, with environments, a controller and rewards; training and evaluation use this loop.

The loop is independent of sockets, records and kinds of task, and returns numbers per environment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np

from esper_ab.contracts.errors import UserCodeFailed
from esper_ab.contracts.records import finite
from esper_ab.contracts.rng import RngPath
from workers.arrays import Floats, flaw
from workers.environments import Controller, Ended, Environments, Seen, Stopwatch

Facts = TypeVar("Facts")
S = TypeVar("S", bound=Seen)


def play(
    env: Environments[S, Facts],
    paths: Sequence[RngPath],
    decider: Controller[S],
    rewards: Mapping[str, Callable[[Facts], Floats]],
    stopwatch: Stopwatch,
    on_step: Callable[[int], None],
) -> Ended:
    """Play one episode with `step_through` and return its result."""
    sums = step_through(env, paths, decider, rewards, stopwatch, on_step)
    endings = env.ends()
    own_sums = next(iter(sums.values()), np.zeros(env.n_envs))
    envs = [msgspec.structs.replace(end, reward_sum=finite(float(own_sums[end.env]))) for end in endings.envs]
    return Ended(tuple(envs), endings.events, sums)


def step_through(
    env: Environments[S, Facts],
    paths: Sequence[RngPath],
    decider: Controller[S],
    rewards: Mapping[str, Callable[[Facts], Floats]],
    stopwatch: Stopwatch,
    on_step: Callable[[int], None],
) -> dict[str, Floats]:
    """Step through an episode at `paths` (one per environment); return the sums of `rewards`, but compute no outcome.

    The decider learns from the first of `rewards`; the others are only summed. If a reward is not finite or is too
    large to compute with, raises a UserCodeFailed that names the mode.
    """
    decider.begin_episode(env.n_envs)
    view = env.begin(paths)
    on_step(view.step)
    decider.exclude(~view.alive)
    sums = {mode: np.zeros(env.n_envs) for mode in rewards}
    decision_phase = stopwatch.phase("decide")
    alive_count = np.count_nonzero(view.alive)
    while alive_count:
        with decision_phase:
            decisions = decider.decide(view, env.uniforms())
        step, next_view = env.step(decisions)
        with decision_phase:
            earned_rewards = {
                mode: _earned(mode, reward(step.facts), view, alive_count) for mode, reward in rewards.items()
            }
            for mode, values in earned_rewards.items():
                sums[mode] += values
                if step.penalty is not None:
                    sums[mode][step.ended] += step.penalty[step.ended]
            own_reward = next(iter(earned_rewards.values())) if earned_rewards else np.zeros(env.n_envs)
            if step.penalty is not None:
                own_reward = own_reward + step.penalty
            decider.reward(own_reward, step.ended, step.cut)
        view = next_view
        alive_count = np.count_nonzero(next_view.alive)
        if alive_count:
            on_step(view.step)
    return sums


def _earned(mode: str, values: Floats, view: Seen, alive_count: np.integer[Any]) -> Floats:
    """Return rewards [E], with 0 for ended environments; UserCodeFailed if `flaw` finds a flaw.

    `alive_count`: number of environments that have not ended.
    """
    earned_reward = values if alive_count == len(values) else np.where(view.alive, values, 0.0)
    if flaw_words := flaw(earned_reward):
        raise UserCodeFailed(f"reward mode {mode!r} {flaw_words} at step {view.step}: {values.tolist()}")
    return earned_reward
