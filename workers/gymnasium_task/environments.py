"""The Gymnasium environments of one run, stepped in a plain loop; implements `Environments` of workers/environments.py.

Also defines the inputs of users' functions: a reward gets the facts of one step, and an outcome gets one episode.

For an environment at path p, reset k takes its seed from p/"reset"/k, and the actions of the rollout take their
uniforms from p/"actions". An environment that depends only on its reset seeds and actions is therefore
bit-reproducible.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from esper_ab.contracts.errors import USER_FAULTS, UserCodeFailed
from esper_ab.contracts.measures import LARGEST_OUTCOME, countable
from esper_ab.contracts.records import EnvEpisode
from esper_ab.contracts.rng import RngPath
from workers.arrays import Bools, Floats, Floats32, Ints, ReadOnlyArrays, all_false, all_true
from workers.environments import Cut, Decisions, Ended, Happened, Stopwatch
from workers.gymnasium_task.spaces import Codec
from workers.user_rewards.user_code import line_of, one_line


@dataclass(frozen=True, kw_only=True)
class GymFacts(ReadOnlyArrays):
    """Complete input of a reward: one step of E environments.

    Where `stepped` is False, the environment had already ended: its row is all zeros, and its `info` is from its last
    step.

    Facts are read-only, because all rewards of a step, the policy and the next observation share them.
    """

    observation: Floats32  # [E, width] flat, before the step
    action: NDArray[Any]  # [E] for a Discrete space, else [E, …] with the space's shape; as given to the environment
    next_observation: Floats32  # [E, width] after the step, before any reset
    env_reward: Floats  # [E] the environment's own reward
    terminated: Bools  # [E]
    truncated: Bools  # [E] by the environment's own limit or the run's
    step: Ints  # [E] of the environment's episode, from 1
    info: tuple[Mapping[str, Any], ...]  # one per environment, as returned; read-only
    stepped: Bools  # [E] False: the episode ended before this step, and its reward is ignored

    def of(self, stepped: Bools) -> GymFacts:
        """Return the facts with every array zeroed in the rows of environments that are not in `stepped` [E]."""
        if stepped.all():
            return self
        rows: dict[str, Any] = {
            name: np.where(stepped.reshape(-1, *[1] * (value.ndim - 1)), value, np.zeros_like(value))
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        }
        return replace(self, **rows)


class GymStep:
    """One step, as passed to reward functions. Its facts are built at the first access."""

    def __init__(self, env_reward: Floats, build: Callable[[], GymFacts]) -> None:
        """Take the environments' own rewards [E] and `build`, which builds the facts.

        `build` must be called before the next step.
        """
        self.env_reward = env_reward
        self._build = build

    @cached_property
    def facts(self) -> GymFacts:
        """The facts of this step, shared by all its readers."""
        return self._build()


@dataclass(kw_only=True)
class GymEpisode:
    """Complete input of an outcome: one environment's episode of T steps."""

    observations: list[Floats32] = field(default_factory=list)  # T + 1, flat; empty if no function may read them
    actions: list[Any] = field(default_factory=list)  # T, as given to the environment; empty if observations are
    env_rewards: list[float] = field(default_factory=list)  # T
    info: Mapping[str, Any] = field(default_factory=dict)  # of the last step
    terminated: bool = False
    truncated: bool = False


Env = gymnasium.Env[Any, Any]
_CHUNK = 256  # steps whose uniforms are drawn at a time
_SEEDS = 2**31
_in_use: set[int] = set()  # ids of the environments, without wrappers, of this process
_OF_RESET = ("observation", "info")
_OF_STEP = ("observation", "reward", "terminated", "truncated", "info")


@dataclass(frozen=True, kw_only=True)
class GymSeen:
    """State before decision `step` of a rollout."""

    masks: ClassVar[None] = None  # every choice is valid
    step: int  # 1-based
    alive: Bools  # [E]
    observation: Floats32  # [E, width]
    codec: Codec  # knows the bounds of a box


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


class _Place:
    """One environment and its current episode."""

    def __init__(self, spec: GymSpec, seen: Floats32) -> None:
        """Create the environment; `seen` [width], a row of the caller's array, holds its current observation."""
        self.env = spec.make()
        self.seen = seen
        self._codec = spec.codec
        self._keeps = spec.keeps
        self._repeats = spec.repeats
        whole = self.env.unwrapped
        if id(whole) in _in_use:
            one = "what makes environments returned one that is in use"
            raise ValueError(f"{one}; it has to make another at every call")
        _in_use.add(id(whole))
        weakref.finalize(self, _leave, self.env, whole)  # when its run, or its evaluation episode, is dropped
        self.going_on = False  # from one rollout to the next

    def reset(self, seed: int) -> None:
        try:
            observation, _ = _parts(self.env.reset(seed=seed), _OF_RESET)
            self.seen[:] = self._codec.flat(observation)
        except OSError:
            raise  # the worker retries when the disk is full
        except USER_FAULTS as error:
            raise _failed("reset", self.env.reset, error, repeats=self._repeats) from error
        self.seed = seed
        self.over = False
        self.decisions: list[list[float]] = []  # since the reset, if the next rollout may go on
        self.episode = GymEpisode(observations=[self.seen.copy()] if self._keeps else [])

    def step(self, action: Any) -> float:
        given = copy(action) if self._keeps else None  # an environment may write into its action
        try:
            returned = self.env.step(action)
            if type(returned) is not tuple or len(returned) != len(_OF_STEP):
                _parts(returned, _OF_STEP)
            observation, reward, terminated, truncated, info = returned
            self.seen[:] = self._codec.flat(observation)
            earned = float(reward)
            told = _apart(dict(info)) if info else {}
            over = bool(terminated or truncated)
        except OSError:
            raise
        except USER_FAULTS as error:
            raise _failed("step", self.env.step, error, repeats=self._repeats) from error
        episode = self.episode
        if self._keeps:
            episode.observations.append(self.seen.copy())
            episode.actions.append(given)
        episode.env_rewards.append(earned)
        episode.info = told
        if over:
            episode.terminated = bool(terminated)
            episode.truncated = bool(truncated)
            self.over = True
        return earned


def _leave(env: Env, whole: Env) -> None:
    close(env)
    _in_use.discard(id(whole))


def _apart(told: Any) -> Any:
    """Return an environment's value with containers and arrays copied, so that neither side modifies the other's."""
    if isinstance(told, np.ndarray):
        return told.copy()
    if type(told) is dict:
        return {key: _apart(value) for key, value in told.items()}
    if type(told) in (list, tuple):
        return type(told)(map(_apart, told))
    return told


def close(env: Env) -> None:
    """Close an environment that is no longer used; its exceptions are ignored, because they cannot affect a run."""
    with suppress(Exception):
        env.close()


def _parts(returned: Any, names: tuple[str, ...]) -> tuple[Any, ...]:
    """Return a tuple that an environment returned; ValueError unless it has the parts `names`."""
    if not isinstance(returned, tuple) or len(returned) != len(names):
        if isinstance(returned, tuple):
            found = f"{len(returned)} parts"
        else:
            found = f"a {type(returned).__name__}"
        raise ValueError(f"it returned {found}, not ({', '.join(names)}), as Gymnasium's environments do")
    return returned


def _failed(name: str, method: Callable[..., Any], error: BaseException, *, repeats: bool) -> ValueError:
    """Return an error that names, in one line, the method that failed and the line of code.

    If the environment `repeats`, the error is a UserCodeFailed, which is not retried.
    """
    reason = str(error) if isinstance(error, ValueError) else one_line(error)
    return (UserCodeFailed if repeats else ValueError)(f"{name} of the environment: {reason}{line_of(error, method)}")


class GymEnvironments:
    """The Gymnasium environments of one run: call `begin`, then `step` until none is alive."""

    def __init__(self, spec: GymSpec, stopwatch: Stopwatch) -> None:
        self._spec = spec
        self._stopwatch = stopwatch
        self.n_envs = len(spec.devices)
        self._now = np.zeros((self.n_envs, spec.codec.spaces.observation_width), dtype=np.float32)
        self._places = [_Place(spec, row) for row in self._now]

    def begin(self, paths: Sequence[RngPath]) -> GymSeen:
        """Start a rollout: reset all environments except those that continue their episode."""
        self._paths = paths
        self._step = 1
        self._resets = [0] * self.n_envs
        self._ended: list[list[GymEpisode]] = [[] for _ in paths]
        self._steps_done = [0] * self.n_envs
        self._alive = all_true(self.n_envs)
        self._living = list(enumerate(self._places))
        for env, place in enumerate(self._places):
            if not place.going_on:
                self._reset(env)
            place.going_on = False
        return self._seen_now(self._now.copy())

    def uniforms(self) -> Floats:
        """Return the random numbers [E, heads or dimensions] of the next decision."""
        chunk, at = divmod(self._step - 1, _CHUNK)
        if at == 0:
            shape = (min(_CHUNK, self._spec.steps - self._step + 1), self._spec.codec.width)
            draws = [(path / "actions" / chunk).generator().random(shape) for path in self._paths]
            self._uniforms: list[Floats] = list(np.stack(draws, axis=1))  # [E, width] for each of these steps
        return self._uniforms[at]

    def step(self, decisions: Decisions) -> tuple[Happened[GymStep], GymSeen]:
        """Step every live environment; if a rollout may contain several episodes, reset environments that ended."""
        spec = self._spec
        before = self._seen
        rewards = np.zeros(self.n_envs)
        actions = spec.codec.actions(decisions)
        over = self._step == spec.steps
        rows = decisions.tolist() if spec.continues else None
        with self._stopwatch.phase("train"):
            for env, place in self._living:
                rewards[env] = place.step(actions[env])
                over = over or place.over
                if rows is not None:
                    place.decisions.append(rows[env])
        observed = after = self._now.copy()
        episodes = [place.episode for place in self._places]  # before any reset
        ended = all_false(self.n_envs)
        cut = None
        if over:
            ended, cut = self._cut(observed)
            self._end(ended, cut)
            after = self._now.copy()
        self._step += 1

        def facts() -> GymFacts:
            return GymFacts(
                observation=before.observation,
                action=spec.codec.given(decisions),
                next_observation=observed,
                env_reward=rewards,
                terminated=ended & ~cut.truncated if cut else ended,
                truncated=cut.truncated & ~cut.goes_on if cut else ended,
                step=np.array([len(episode.env_rewards) for episode in episodes], dtype=np.int64),
                info=tuple(MappingProxyType(episode.info) for episode in episodes),
                stepped=before.alive,
            ).of(before.alive)

        step = GymStep(rewards, facts)
        return Happened(facts=step, ended=ended, cut=cut), self._seen_now(after)

    def _cut(self, observed: Floats32) -> tuple[Bools, Cut]:
        """Return a mask [E] of the environments whose episode or rollout ended with this step, and how each ended."""
        spec = self._spec
        alive = self._alive
        last = self._step == self._spec.steps
        episodes = [place.episode for place in self._places]
        terminated = alive & np.array([episode.terminated for episode in episodes])
        over = alive & np.array([episode.terminated or episode.truncated for episode in episodes])
        truncated = alive & ~terminated & (over | last)
        ended = terminated | truncated
        return ended, Cut(
            truncated=truncated,
            last=observed,
            restarted=ended & (spec.resets and not last),
            goes_on=truncated & ~over & spec.continues,
        )

    def ends(self) -> Ended:
        """Return the results of every environment's rollout: means over the episodes that ended in the rollout.

        If no episode ended in an environment, it has neither outcome nor measures, because users' functions get only
        complete episodes.
        """
        return Ended(tuple(self._end_of(env) for env in range(self.n_envs)), ())

    def carried(self) -> dict[str, Any]:
        """Return the state of every environment that is mid-episode.

        The state consists of the reset seed, the decisions since the reset, and the last observation.
        """
        if not self._spec.continues:
            return {}
        kind = torch.float64 if self._spec.codec.box else torch.int64
        going_on = {
            str(env): {
                "seed": place.seed,
                "decisions": torch.tensor(place.decisions, dtype=kind),
                "seen": torch.from_numpy(place.seen.copy()),
            }
            for env, place in enumerate(self._places)
            if place.going_on
        }
        return {"going_on": going_on}

    def take_up(self, carried: dict[str, Any]) -> Bools:
        """Replay environments that were mid-episode, and compare their observations with the saved ones.

        Raises ValueError if any differ. Environments that are known not to repeat are reset instead of replayed.
        """
        goes_on = all_false(self.n_envs)
        for env, kept in carried["going_on"].items() if self._spec.continues and self._spec.repeats else ():
            place = self._places[int(env)]
            place.reset(kept["seed"])
            for action in self._spec.codec.actions(kept["decisions"].numpy()):
                place.step(action)
            place.decisions = kept["decisions"].tolist()
            if not np.array_equal(place.seen, kept["seen"].numpy(), equal_nan=True):
                raise ValueError(f"environment {env} does not repeat: after the same actions it shows something else")
            goes_on[int(env)] = True
        for place, one in zip(self._places, goes_on.tolist(), strict=True):  # only now: a replay may be refused
            place.going_on = one
        return goes_on

    def _reset(self, env: int) -> None:
        seed = int((self._paths[env] / "reset" / self._resets[env]).generator().integers(_SEEDS))
        self._resets[env] += 1
        self._places[env].reset(seed)

    def _end(self, ended: Bools, cut: Cut) -> None:
        for env in np.flatnonzero(ended).tolist():
            place, self._steps_done[env] = self._places[env], self._step
            place.going_on = bool(cut.goes_on[env])
            if place.episode.terminated or place.episode.truncated or not self._spec.resets:
                place.episode.truncated = not place.episode.terminated
                self._ended[env].append(place.episode)
            if cut.restarted[env]:
                self._reset(env)
        self._alive = (self._alive & ~ended) | cut.restarted
        self._living = [one for one, alive in zip(enumerate(self._places), self._alive.tolist(), strict=True) if alive]

    def _end_of(self, env: int) -> EnvEpisode:
        spec = self._spec
        episodes = self._ended[env]
        measures = [spec.measures(episode) for episode in episodes]  # first: a user's outcome may write into an episode
        outcomes = [float(spec.outcome(episode)) for episode in episodes]
        worst = spec.worst
        failed = not all(map(countable, outcomes))
        if failed and worst is None:
            raise UserCodeFailed(
                f"the outcome of environment {env} is not a number from -{LARGEST_OUTCOME:g} to {LARGEST_OUTCOME:g}: "
                f"{outcomes}; to count such an episode as the worse end of a range, set --outcome-range LOW..HIGH, or "
                "define its worth with an outcome of your own, path.py:function"
            )
        if failed and worst is not None:
            outcomes = [outcome if countable(outcome) else worst for outcome in outcomes]
        names = spec.measures(GymEpisode())  # also when no episode ended
        means = {name: _mean([one[name] for one in measures]) for name in names}
        return EnvEpisode(
            env=env,
            device=spec.devices[env],
            steps=self._steps_done[env],
            outcome=float(np.mean(outcomes)) if outcomes else None,
            reward_sum=None,
            failed=failed,
            measures=means,
        )

    def _seen_now(self, observed: Floats32) -> GymSeen:
        self._seen = GymSeen(step=self._step, alive=self._alive, observation=observed, codec=self._spec.codec)
        return self._seen


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean of the usable numbers among `values`; None if there are none."""
    known = [value for value in values if value is not None and countable(value)]
    return float(np.mean(known)) if known else None
