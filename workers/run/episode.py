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
    ended = env.ends()
    own = next(iter(sums.values()), np.zeros(env.n_envs))
    envs = [msgspec.structs.replace(end, reward_sum=finite(float(own[end.env]))) for end in ended.envs]
    return Ended(tuple(envs), ended.events, sums)


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
    seen = env.begin(paths)
    on_step(seen.step)
    decider.exclude(~seen.alive)
    sums = {mode: np.zeros(env.n_envs) for mode in rewards}
    deciding = stopwatch.phase("decide")
    alive = np.count_nonzero(seen.alive)
    while alive:
        with deciding:
            decisions = decider.decide(seen, env.uniforms())
        happened, after = env.step(decisions)
        with deciding:
            earned = {mode: _earned(mode, reward(happened.facts), seen, alive) for mode, reward in rewards.items()}
            for mode, values in earned.items():
                sums[mode] += values
                if happened.penalty is not None:
                    sums[mode][happened.ended] += happened.penalty[happened.ended]
            own = next(iter(earned.values())) if earned else np.zeros(env.n_envs)
            if happened.penalty is not None:
                own = own + happened.penalty
            decider.reward(own, happened.ended, happened.cut)
        seen = after
        alive = np.count_nonzero(after.alive)
        if alive:
            on_step(seen.step)
    return sums


def _earned(mode: str, values: Floats, seen: Seen, alive: np.integer[Any]) -> Floats:
    """Return rewards [E], with 0 for ended environments; UserCodeFailed if `flaw` finds a flaw.

    `alive`: number of environments that have not ended.
    """
    earned = values if alive == len(values) else np.where(seen.alive, values, 0.0)
    if wrong := flaw(earned):
        raise UserCodeFailed(f"reward mode {mode!r} {wrong} at step {seen.step}: {values.tolist()}")
    return earned
