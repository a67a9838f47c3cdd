"""The Gymnasium environments of a run: how they are created, their rewards and their outcomes.

Resolves the names of tasks, outcomes and rewards to functions from Gymnasium's registry or from the user. Every
error is a one-line ValueError that names what was asked for, the fault and the remedy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import gymnasium
import msgspec
import numpy as np
import torch
from gymnasium.envs import registration

from esper_ab.contracts.errors import USER_FAULTS, UserCodeFailed
from esper_ab.contracts.kinds_of_task import ENV_REWARD, GYM_PREFIX, INFO_PREFIX, is_own_outcome
from esper_ab.contracts.measures import Measure
from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.worker_order import RunSpec
from workers.arrays import Floats, Ints
from workers.environments import Controller, Decisions, Stopwatch
from workers.kinds.gymnasium.environments import GymEnvironments, GymSeen
from workers.kinds.gymnasium.facts import GymEpisode, GymStep
from workers.kinds.gymnasium.place import Env, GymSpec, close
from workers.kinds.gymnasium.spaces import Codec
from workers.user_code.loading import (
    Load,
    annotation_of,
    as_it_is,
    fields_of,
    function_at,
    line_of,
    load_module,
    numbers,
    one_line,
)

Reward = Callable[[GymStep], Floats]
Outcome = Callable[[GymEpisode], float]


def env_return(episode: GymEpisode) -> float:
    """Return the environment's own undiscounted return."""
    return float(np.sum(episode.env_rewards))


def maker(task: str, load: Load) -> Callable[[], Env]:
    """Return a function that creates an environment of `task`: `gym:ID`, `gym:module:ID` or `path/env.py:make`."""
    subject = f"task {task!r}"
    if not task.startswith(GYM_PREFIX):
        return _checked(function_at(subject, task, load, "()")[1], subject)
    name = task.removeprefix(GYM_PREFIX)
    _check_registered(name, subject)
    return _checked(lambda: gymnasium.make(name, disable_env_checker=True), subject)


def _check_registered(name: str, subject: str) -> None:
    """Import the module of `module:ID`, if any, and look up ID; ValueError if ID is unknown or has no version."""
    module, colon, registered_id = name.rpartition(":")
    if colon and not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(f"{subject}: expected {GYM_PREFIX}ID or {GYM_PREFIX}module:ID")
    if module:
        load_module(subject, module)
    try:
        space, base, version = registration.parse_env_id(registered_id)
        newest_version = registration.find_highest_version(space, base)
        if version is None and newest_version is not None:  # gymnasium.make would take the newest, with a warning
            full_name = f"{GYM_PREFIX}{module}{colon}{registration.get_env_id(space, base, newest_version)}"
            raise ValueError(
                f"{subject} names no version, and means another environment when a newer one is installed; "
                f"{full_name} is the newest here"
            )
        gymnasium.spec(registered_id)
    except gymnasium.error.Error as error:
        raise ValueError(f"{subject}: {one_line(error)}") from None


def _checked(make: Callable[[], Any], subject: str) -> Callable[[], Env]:
    def checked_maker() -> Env:
        try:
            env = make()
        except USER_FAULTS as error:
            raise ValueError(f"{subject} cannot be made: {one_line(error)}{line_of(error, make)}") from error
        if not isinstance(env, gymnasium.Env):
            raise ValueError(f"{subject} is a {type(env).__name__}, not a gymnasium.Env")
        return env

    return checked_maker


def codec_of(make: Callable[[], Env]) -> tuple[Codec, int]:
    """Return the codec for an environment's spaces, and the environment's own step limit, or 0 if it has none."""
    env = make()
    try:
        for name in ("observation_space", "action_space"):
            if not isinstance(getattr(env, name, None), gymnasium.Space):
                raise ValueError(f"it has no {name}, a gymnasium.Space, by which a policy is made")
        limit = getattr(getattr(env, "spec", None), "max_episode_steps", None) or 0
        return Codec(env.observation_space, env.action_space), limit
    finally:
        close(env)


def outcome_of(outcome: str, load: Load) -> Outcome:
    """Return the function that computes an episode's outcome.

    `outcome`: "" for the return, `info:KEY` for an entry of the last step's info, or a user's function.
    """
    if not outcome:
        return env_return
    subject = f"outcome {outcome!r}"
    if ":" not in outcome:
        raise ValueError(f"{subject}: expected {INFO_PREFIX}{outcome}, or path/to/file.py:function or module:function")
    if not outcome.startswith(INFO_PREFIX):
        return _number(function_at(subject, outcome, load, "(episode)")[1], subject)
    key = outcome.removeprefix(INFO_PREFIX)

    def of_info(episode: GymEpisode) -> Any:
        if key not in episode.info:
            keys = ", ".join(map(str, episode.info)) or "nothing"
            raise ValueError(f"info at the end of an episode has no such key; it has {keys}")
        return episode.info[key]

    return _number(of_info, subject)


def _number(function: Callable[[GymEpisode], Any], subject: str) -> Outcome:
    def number(episode: GymEpisode) -> float:
        try:
            value = float(function(episode))
        except USER_FAULTS as error:
            reason = str(error) if isinstance(error, ValueError) else one_line(error)
            raise UserCodeFailed(f"{subject}: {reason}{line_of(error, function)}") from error
        return value

    return number


def reward_of(settings: RewardSettings, load: Load) -> Reward:
    """Return the function of a reward mode (`env` or a user's own), with the mode's constants bound."""
    mode = settings.mode
    subject = f"reward mode {mode!r}"
    if mode == ENV_REWARD:
        if settings.params:
            raise ValueError(f"{subject}: the environment's own reward has no constants (reward.params)")
        return lambda step: step.env_reward
    module, function = function_at(subject, mode, load, "(facts)", "(facts, params)")
    constants = _constants(function, settings.params, module, subject)

    def reward(step: GymStep) -> Floats:
        return numbers(subject, function, (step.facts, *constants), step.env_reward.shape)

    return reward


def _constants(
    function: Callable[..., Any], params: dict[str, Any], module: ModuleType, subject: str
) -> tuple[msgspec.Struct, ...]:
    """Return the arguments after `facts`: none, or the struct that annotates the function's second parameter."""
    names = list(inspect.signature(function).parameters)
    if len(names) < 2:
        if params:
            raise ValueError(
                f"{subject} has no parameter for constants; declare a msgspec.Struct and add it: (facts, params: Mine)"
            )
        return ()
    declared_type = annotation_of(function, 1, module, subject)
    if not (isinstance(declared_type, type) and issubclass(declared_type, msgspec.Struct)):
        raise ValueError(f"{subject}: annotate {names[1]!r} with the msgspec.Struct that declares its constants")
    fields = fields_of(declared_type, module, subject)
    unknown_names = [name for name in params if name not in {field.name for field in fields}]
    if unknown_names:
        known_names = ", ".join(field.name for field in fields) or "none"
        raise ValueError(f"{subject} has no constant {unknown_names[0]!r}; {declared_type.__name__} has {known_names}")
    if any(field.required for field in fields):
        raise ValueError(f"{subject}: every constant of {declared_type.__name__} needs a default")
    try:
        return (msgspec.convert(params, declared_type),)
    except msgspec.ValidationError as error:
        raise ValueError(f"{subject}: {error}") from None
    except USER_FAULTS as error:  # of its __post_init__
        raise ValueError(
            f"{subject}: {declared_type.__name__} failed: {one_line(error)}{line_of(error, function)}"
        ) from error


RETURN = Measure(name="env_return", label="return", better="higher")
LENGTH = Measure(name="length", label="episode length", unit="steps", low=0.0)
NO_LIMIT = 10_000_000


def measures(outcome: str) -> tuple[Measure, ...]:
    """Return the measures recorded in addition to the outcome."""
    if outcome:
        return RETURN, LENGTH
    return (LENGTH,)


def measured(outcome: str, episode: GymEpisode) -> dict[str, float | None]:
    """Return an episode's measures, by the names of `measures`."""
    values: dict[str, float | None] = {}
    if outcome:
        values[RETURN.name] = env_return(episode)
    values[LENGTH.name] = float(len(episode.env_rewards))
    return values


class GymWorld:
    """The environments of one run, created as its RunSpec specifies."""

    def __init__(self, spec: RunSpec, loader: Load = as_it_is) -> None:
        self._spec = spec
        self._load = loader
        gym = spec.settings.gym
        self._make = maker(spec.task, loader)
        self._codec, _ = codec_of(self._make)
        self._outcome = outcome_of(spec.outcome, loader)
        self.spaces = self._codec.spaces
        if gym.rollout == "episodes":
            self.evaluation_steps = spec.steps
        else:
            self.evaluation_steps = gym.episode_steps or NO_LIMIT

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole_episodes: bool
    ) -> GymEnvironments:
        """Create the run's first `n_envs` environments, for rollouts of up to `steps` steps.

        If `whole_episodes`, every rollout is one episode per environment, from a reset to its end or to `steps`.
        """
        rollout = "episodes" if whole_episodes else self._spec.settings.gym.rollout
        spec = GymSpec(
            make=self._make,
            codec=self._codec,
            outcome=self._outcome,
            keeps=is_own_outcome(self._spec.outcome),
            worst=self._spec.outcome_worst,
            measures=partial(measured, self._spec.outcome),
            steps=steps,
            resets=rollout != "episodes",
            continues=rollout == "continues",
            repeats=self._spec.repeats,
            devices=self._spec.env_devices[:n_envs],
        )
        return GymEnvironments(spec, stopwatch)

    def reward(self, settings: RewardSettings) -> Callable[..., Floats]:
        """Return the function of a reward mode with its constants bound."""
        return reward_of(settings, self._load)


class RandomActions(Controller[GymSeen]):
    """Samples every head, or every bounded dimension of a box, uniformly; other dimensions are standard normal."""

    def decide(self, view: GymSeen, uniforms: Floats) -> Decisions:
        """Return decisions [E, heads or dimensions]."""
        box = view.codec
        if not box.box:
            sizes = np.array(box.spaces.head_sizes)
            choices: Ints = np.minimum((uniforms * sizes).astype(np.int64), sizes - 1)
            return choices
        bounded_mask = np.isfinite(box.low) & np.isfinite(box.high)
        low = np.where(bounded_mask, box.low, 0.0)
        high = np.where(bounded_mask, box.high, 0.0)
        normal_draws = torch.special.ndtri(torch.from_numpy(np.maximum(uniforms, 2.0**-54))).numpy()
        if box.integers:
            even_draws = np.floor(uniforms * (high - low + 1.0))
        else:
            even_draws = (high - low) * uniforms
        numbers: Floats = np.where(bounded_mask, low + even_draws, normal_draws)
        return numbers
