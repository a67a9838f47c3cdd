"""One Gymnasium environment with its current episode: calls it, checks what it returns, and closes it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from esper_ab.contracts.errors import USER_FAULTS, UserCodeFailed
from workers.arrays import Floats32
from workers.kinds.gymnasium.facts import GymEpisode
from workers.kinds.gymnasium.spaces import Codec
from workers.user_code.loading import line_of, one_line

Env = gymnasium.Env[Any, Any]
_in_use: set[int] = set()  # ids of the environments, without wrappers, of this process
_OF_RESET = ("observation", "info")
_OF_STEP = ("observation", "reward", "terminated", "truncated", "info")


@dataclass(frozen=True, kw_only=True)
class GymSpec:
    """Specification of the environments: everything except randomness."""

    make: Callable[[], Env]
    codec: Codec
    outcome: Callable[[GymEpisode], float]
    keeps: bool  # keep observations and actions of whole episodes for the outcome; they may take a lot of memory
    worst: float | None = None  # replaces an outcome that is no number; if None, such an outcome is an error
    measures: Callable[[GymEpisode], dict[str, float | None]]
    steps: int  # of a rollout
    resets: bool = False  # reset an environment that ends within a rollout; else it stays ended
    continues: bool = False  # the next rollout continues where this one ends
    repeats: bool = True  # the same seed and actions give the same episode
    devices: tuple[str, ...]


class Place:
    """One environment and its current episode."""

    def __init__(self, spec: GymSpec, observation: Floats32) -> None:
        """Create the environment; `observation` [width], a row of the caller's array, holds its current observation."""
        self.env = spec.make()
        self.observation = observation
        self._codec = spec.codec
        self._keeps = spec.keeps
        self._repeats = spec.repeats
        bare_env = self.env.unwrapped
        if id(bare_env) in _in_use:
            raise ValueError(
                "what makes environments returned one that is in use; it has to make another at every call"
            )
        _in_use.add(id(bare_env))
        weakref.finalize(self, _leave, self.env, bare_env)  # when its run, or its evaluation episode, is dropped
        self.going_on = False  # from one rollout to the next

    def reset(self, seed: int) -> None:
        """Begin an episode."""
        try:
            observation, _ = _parts(self.env.reset(seed=seed), _OF_RESET)
            self.observation[:] = self._codec.flat(observation)
        except OSError:
            raise  # the worker retries when the disk is full
        except USER_FAULTS as error:
            raise _failed("reset", self.env.reset, error, repeats=self._repeats) from error
        self.seed = seed
        self.over = False
        self.decisions: list[list[float]] = []  # since the reset, if the next rollout may go on
        self.episode = GymEpisode()
        if self._keeps:
            self.episode.observations.append(self.observation.copy())

    def step(self, action: Any) -> float:
        """Take a step of the episode; return the environment's own reward."""
        given_action = copy(action) if self._keeps else None  # an environment may write into its action
        try:
            returned_parts = self.env.step(action)
            if type(returned_parts) is not tuple or len(returned_parts) != len(_OF_STEP):
                _parts(returned_parts, _OF_STEP)
            observation, reward, is_terminated, is_truncated, info = returned_parts
            self.observation[:] = self._codec.flat(observation)
            earned_reward = float(reward)
            copied_info = _copy_value(dict(info)) if info else {}
            is_over = bool(is_terminated or is_truncated)
        except OSError:
            raise
        except USER_FAULTS as error:
            raise _failed("step", self.env.step, error, repeats=self._repeats) from error
        episode = self.episode
        if self._keeps:
            episode.observations.append(self.observation.copy())
            episode.actions.append(given_action)
        episode.env_rewards.append(earned_reward)
        episode.info = copied_info
        if is_over:
            episode.terminated = bool(is_terminated)
            episode.truncated = bool(is_truncated)
            self.over = True
        return earned_reward


def _leave(env: Env, bare_env: Env) -> None:
    close(env)
    _in_use.discard(id(bare_env))


def _copy_value(value: Any) -> Any:
    """Return an environment's value with containers and arrays copied, so that neither side modifies the other's."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value) is dict:
        return {key: _copy_value(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_copy_value, value))
    return value


def close(env: Env) -> None:
    """Close an environment that is no longer used; its exceptions are ignored, because they cannot affect a run."""
    with suppress(Exception):
        env.close()


def _parts(returned_parts: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return a tuple that an environment returned; ValueError unless it has the parts `names`."""
    if not isinstance(returned_parts, tuple) or len(returned_parts) != len(names):
        if isinstance(returned_parts, tuple):
            received_words = f"{len(returned_parts)} parts"
        else:
            received_words = f"a {type(returned_parts).__name__}"
        raise ValueError(f"it returned {received_words}, not ({', '.join(names)}), as Gymnasium's environments do")
    return returned_parts


def _failed(name: str, method: Callable[..., Any], error: BaseException, *, repeats: bool) -> ValueError:
    """Return an error that names, in one line, the method that failed and the line of code.

    If the environment `repeats`, the error is a UserCodeFailed, which is not retried.
    """
    reason = str(error) if isinstance(error, ValueError) else one_line(error)
    message = f"{name} of the environment: {reason}{line_of(error, method)}"
    return UserCodeFailed(message) if repeats else ValueError(message)
