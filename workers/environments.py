"""The interface between runs and kinds of task: the environments that a session, an episode and a policy use.

    seen = environments.begin(paths)
    while seen.alive.any():
        happened, seen = environments.step(decisions)
    ended = environments.ends()

The E environments of one run are stepped together. Each draws all its random numbers at addresses below its path
(contracts/rng.py).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from esper_ab.contracts import catalog
from esper_ab.contracts.kinds_of_task import kind_of_task
from esper_ab.contracts.machine import Questions, TaskFacts, UserReward
from esper_ab.contracts.records import EnvEpisode, EpisodeRecord, EvaluationRecord, SeedEvent, Timing
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.trainer import TrainerFacts
from esper_ab.contracts.worker_order import Lane, RunSpec
from workers.arrays import Bools, Floats, Floats32, Ints

OnStep = Callable[[int], None]  # called with the number of a step, to report progress
Decisions = NDArray[Any]  # [E, heads] int64, or [E, dimensions] float64 where decisions are continuous
Facts_co = TypeVar("Facts_co", covariant=True)
Seen_co = TypeVar("Seen_co", bound="Seen", covariant=True)


class Masks(Protocol):
    """Source of the valid choices, head by head."""

    def mask(self, head: int, choices: Ints) -> Bools:
        """Return the valid choices [E, size of head], given the choices [E, head] of all earlier heads.

        Where a row is all False, the environment does not use this head.
        """


class Seen(Protocol):
    """The inputs of a decision, for all environments at once.

    Each kind of task adds the inputs that its controllers need.
    """

    @property
    def step(self) -> int:
        """The step to decide, from 1."""

    @property
    def alive(self) -> Bools:
        """True [E] where the episode continues; ended environments have nothing to decide."""

    @property
    def masks(self) -> Masks | None:
        """The valid choices of every head; None: all are valid."""

    @property
    def observation(self) -> Floats32:
        """The input of a policy, [E, width]."""


@dataclass(frozen=True, kw_only=True)
class Spaces:
    """The shapes of a policy's observations and decisions."""

    observation_width: int
    head_names: tuple[str, ...]  # or the dimensions' names, where decisions are continuous
    head_sizes: tuple[int, ...]  # choices per head; empty where decisions are continuous
    observation_std_floor: float  # smallest standard deviation by which an observation is divided
    first_bias: tuple[float, ...] = ()  # where a policy's logits of head 0 start; empty: at 0


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Which environments were truncated, restarted in the same rollout, or continue in the next one."""

    # [E] whose episode was cut off by a limit, or by the end of the rollout. The policy's value of the observation
    # `last` [E, width] stands for the rewards that the episode would have earned afterwards.
    truncated: Bools
    last: Floats32
    restarted: Bools  # [E] that ended, and have begun another episode in the same rollout
    goes_on: Bools  # [E] that continue in the next rollout


@dataclass(frozen=True, kw_only=True)
class Happened(Generic[Facts_co]):
    """The results of one step's decisions."""

    facts: Facts_co  # the input of this kind's rewards; later steps do not change it
    ended: Bools  # [E] whose episode or rollout ended with this step
    penalty: Floats | None = None  # [E] added, under every mode, to the reward of those that ended
    cut: Cut | None = None  # None: every episode ends by itself, with the rollout at the latest


@dataclass(frozen=True)
class Ended:
    """The results of a finished episode."""

    envs: tuple[EnvEpisode, ...]  # one per environment, without the sum of its rewards
    events: tuple[SeedEvent, ...]
    rewards: dict[str, Floats] = field(default_factory=dict)  # sums [E] by mode, for every requested mode


class Environments(Protocol[Seen_co, Facts_co]):
    """The environments of a run, or of one of its evaluation episodes."""

    @property
    def n_envs(self) -> int:
        """The number of environments, E."""

    def begin(self, paths: Sequence[RngPath]) -> Seen_co:
        """Start an episode, with one rng address per environment."""

    def uniforms(self) -> Floats:
        """Return the random numbers [E, heads] of the next decision, in [0, 1)."""

    def step(self, decisions: Decisions) -> tuple[Happened[Facts_co], Seen_co]:
        """Execute the decisions in every live environment."""

    def ends(self) -> Ended:
        """Return the results of the episode; call once, after its last step."""

    def carried(self) -> dict[str, Any]:
        """Return state that outlives an episode, as plain containers of tensors and builtins; {} if there is none."""

    def take_up(self, carried: dict[str, Any]) -> Bools:
        """Restore the state that `carried` returned; call before the first episode.

        Return True [E] for environments that are mid-episode; the rest are reset when the next episode begins.
        After an error of `durable.FOREIGN`, nothing is restored and all environments are reset.
        """


class World(Protocol):
    """The task of one run, made by the task's `Kind`; creates the run's environments and reward functions."""

    @property
    def spaces(self) -> Spaces:
        """The spaces of all environments."""

    @property
    def evaluation_steps(self) -> int:
        """The maximum number of steps of an evaluation episode."""

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole_episodes: bool
    ) -> AnyEnvironments:
        """Create the run's first `n_envs` environments, for rollouts of up to `steps` steps.

        If `whole_episodes`, every rollout is one episode per environment, from a reset to its end or to `steps`.
        """

    def reward(self, settings: RewardSettings) -> Callable[[Any], Floats]:
        """Return a reward mode's function from facts to rewards [E], with its constants bound."""


AnyEnvironments = Environments[Any, Any]


def paths_below(path: RngPath, n_envs: int) -> list[RngPath]:
    """Return the addresses of the environments of an episode at `path`."""
    return [path / "env" / env for env in range(n_envs)]


class _Phase:
    """A context that sums the wall time spent in it. Not reentrant."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def __enter__(self) -> None:
        self._start = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.spent_s += time.monotonic() - self._start


class Stopwatch:
    """Sums wall time by phase since the last `lap`."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._phases = {name: _Phase() for name in ("train", "validate", "decide", "update")}

    def phase(self, name: str) -> _Phase:
        """Return a context that adds the time inside it to `name`: "train", "validate", "decide" or "update"."""
        return self._phases[name]

    def lap(self) -> Timing:
        """Return the times since the last lap, and start the next."""
        start = self._start
        self._start = time.monotonic()
        spent_seconds = {f"{name}_s": phase.spent_s for name, phase in self._phases.items()}
        for phase in self._phases.values():
            phase.spent_s = 0.0
        return Timing(total_s=self._start - start, **spent_seconds)


S = TypeVar("S", bound=Seen, contravariant=True)


class Controller(ABC, Generic[S]):
    """Decides for all environments of a run at once; all its randomness comes from the given uniforms."""

    def begin_episode(self, n_envs: int) -> None:
        """Reset all state of earlier episodes."""

    @abstractmethod
    def decide(self, view: S, uniforms: Floats) -> Decisions:
        """Return one decision per environment, [E, head], valid under `view.masks`; `uniforms` [E, head] in [0, 1)."""

    def exclude(self, envs: Bools) -> None:
        """Receive a mask [E] of the environments that ended before their first decision.

        Decisions for them have no effect.
        """

    def reward(self, rewards: Floats, done_mask: Bools, cut: Cut | None = None) -> None:
        """Receive the rewards [E] of the last decision; `done_mask` [E]: the environments that ended with it.

        `cut` says which environments were truncated, restarted, or continue in the next rollout.
        """


@dataclass(frozen=True, kw_only=True)
class AboutTask:
    """The preflight's findings about a task, in the fields of `Machine`."""

    tasks: tuple[TaskFacts, ...] = ()
    rewards: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    blueprints: tuple[str, ...] = ()
    native_blueprints: tuple[str, ...] = ()  # those that a native kernel can train
    user_rewards: tuple[UserReward, ...] = ()
    trainer: TrainerFacts | None = None
    task_problem: str = ""
    reward_problems: dict[str, str] = field(default_factory=dict)  # by group
    controller_problems: dict[str, str] = field(default_factory=dict)  # by group


class RunSession(Protocol):
    """One run, made by the task's `Kind` and executed by a worker's loop."""

    spec: RunSpec

    def warm_up(self, on_step: OnStep) -> float:
        """Do what makes the first episode as fast as later ones; return the seconds that it took."""

    def train(self, episode: int, on_step: OnStep, on_update: OnStep) -> EpisodeRecord:
        """Train for episode `episode`, and return its record."""

    def evaluate(self, experiment_dir: Path, on_step: OnStep) -> EvaluationRecord:
        """Save what was trained, then evaluate it.

        If it cannot be saved, OSError is raised before anything else is done, and the call may be repeated.
        """

    @property
    def stateless(self) -> bool:
        """True if a run needs no checkpoint to resume after an episode."""

    def checkpoint(self) -> bytes | None:
        """Return the state as bytes; None if there is nothing to save."""

    def resume_from(self, data: bytes) -> None:
        """Restore the state that `checkpoint` returned; raises an error of `durable.FOREIGN` for other bytes."""


class Kind(ABC):
    """A kind of task. Each folder of workers/kinds has a module `kind` with `KIND`, an instance of a subclass."""

    runs_only_our_code = False  # True if its runs execute only this package, apart from rewards
    smaller = "a smaller batch needs"  # less memory

    @abstractmethod
    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Inspect a task before any training; `doing` is called with a description of each activity."""

    def step_s(self, questions: Questions, device: str) -> float:
        """Return the measured seconds of one step of a run on a GPU; 0 if this kind does not measure them."""
        return 0.0

    @abstractmethod
    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], RunSession]:
        """Return a function that creates the runs of one worker; objects cached between runs stay on that worker."""

    def controller(self, spec: RunSpec) -> Controller[Any]:
        """Create the controller that `spec` names."""
        raise ValueError(f"no controller {spec.settings.controller.name!r} for {spec.task}")

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> World:
        """Return the world of the policy at `path`.

        ValueError if that would run code outside the modules `importable`.
        """
        raise ValueError(f"{path}: its task {spec.task!r} is code, which a policy file must not cause to run")

    def summary(self, episodes: Sequence[EnvEpisode]) -> tuple[dict[str, Any], str]:
        """Return the means over an evaluation's episodes, by name and as a sentence."""
        means = {}
        for name in episodes[0].measures:
            values = [episode.measures[name] for episode in episodes]
            known_values = [value for value in values if value is not None]
            means[name] = float(np.mean(known_values or [np.nan]))
        outcome = float(np.mean([episode.outcome for episode in episodes]))
        words = [f"outcome {outcome:.2f}", *(f"{name} {mean:.2f}" for name, mean in means.items())]
        return {"outcome": outcome, "measures": means}, ", ".join(words)


def kind_of(task: str) -> Kind:
    """Return the kind of a task, from its folder in workers/kinds."""
    kind: Kind = catalog.entry(f"workers.kinds.{kind_of_task(task)}", "kind", "KIND")
    return kind
