"""The interface between runs and kinds of task: everything that sessions, episodes and policies know of environments.

    seen = environments.begin(paths)
    while seen.alive.any():
        happened, seen = environments.step(decisions)
    ended = environments.ends()

E environments of one run, side by side. They draw random numbers below their rng paths only (contracts/rng.py).
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
from esper_ab.contracts.children import Questions, TaskFacts, UserReward
from esper_ab.contracts.messages import Lane, RunSpec
from esper_ab.contracts.records import EnvEpisode, SeedEvent, Timing
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import RewardSettings, kind_of_task
from esper_ab.contracts.trainer import TrainerFacts
from workers.arrays import Bools, Floats, Floats32, Ints

Decisions = NDArray[Any]  # [E, heads] int64, or [E, dimensions] float64 where decisions are continuous
Facts_co = TypeVar("Facts_co", covariant=True)
Seen_co = TypeVar("Seen_co", bound="Seen", covariant=True)


class Masks(Protocol):
    """Source of the valid choices, head by head."""

    def mask(self, head: int, chosen: Ints) -> Bools:
        """Return [E, size of head] given the choices [E, head] of all earlier heads; an all-False row: head unused."""


class Seen(Protocol):
    """Input of a decision, for all environments at once; a kind of task adds what its controllers need."""

    @property
    def step(self) -> int:
        """Which step is decided, from 1."""

    @property
    def alive(self) -> Bools:
        """Environments [E] whose episode goes on; where none does, there is nothing to decide."""

    @property
    def masks(self) -> Masks | None:
        """The valid choices of every head; None: all are valid."""

    @property
    def observation(self) -> Floats32:
        """What a policy sees, [E, width]."""


@dataclass(frozen=True, kw_only=True)
class Spaces:
    """Sizes of observations and decisions."""

    observation_width: int
    head_names: tuple[str, ...]  # or those of the dimensions, where decisions are continuous
    head_sizes: tuple[int, ...]  # choices per head; empty where decisions are continuous
    observation_std_floor: float  # smallest standard deviation by which an observation is divided
    first_bias: tuple[float, ...] = ()  # where a policy's logits of head 0 start; empty: at 0


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Episodes that were cut off, restarted or continued."""

    # [E] whose episode was cut off by a limit, or whose rollout ends here: the policy's value of the observation `last`
    # [E, width] stands for later rewards.
    truncated: Bools
    last: Floats32
    restarted: Bools  # [E] that ended, and have begun another episode in the same rollout
    goes_on: Bools  # [E] that continue in the next rollout


@dataclass(frozen=True, kw_only=True)
class Happened(Generic[Facts_co]):
    """The result of one step's decisions."""

    facts: Facts_co  # input of this kind's rewards; later steps do not change it
    ended: Bools  # [E] whose episode ended with this step, or whose rollout did
    penalty: Floats | None = None  # [E] added to the reward of those that ended under every mode
    cut: Cut | None = None  # None: every episode ends by itself, with the rollout at the latest


@dataclass(frozen=True)
class Ended:
    """The result of an episode."""

    envs: tuple[EnvEpisode, ...]  # one per environment; environments know no sum of its rewards
    events: tuple[SeedEvent, ...]
    rewards: dict[str, Floats] = field(default_factory=dict)  # mode -> their sums [E], of every requested mode


class Environments(Protocol[Seen_co, Facts_co]):
    """The environments of a run, or of an episode of its evaluation."""

    @property
    def n_envs(self) -> int:
        """E."""

    def begin(self, paths: Sequence[RngPath]) -> Seen_co:
        """Start an episode, with one rng address per environment."""

    def uniforms(self) -> Floats:
        """Return the random numbers [E, heads] of the next decision, in [0, 1)."""

    def step(self, decisions: Decisions) -> tuple[Happened[Facts_co], Seen_co]:
        """Execute the decisions in every environment that is alive."""

    def ends(self) -> Ended:
        """Return the result of the episode; call once, after its last step."""

    def carried(self) -> dict[str, Any]:
        """Return state that outlives an episode, as plain containers of tensors and builtins; may be empty."""

    def take_up(self, carried: dict[str, Any]) -> Bools:
        """Restore what `carried` returned; called before the first episode.

        Returns which environments [E] are in the middle of an episode; the others begin afresh. After an error of
        `state_bytes.FOREIGN` nothing is restored, and all begin afresh.
        """


class World(Protocol):
    """One run's task: makes its environments and binds its rewards. An entry of workers/kinds makes it."""

    @property
    def spaces(self) -> Spaces:
        """Of all its environments."""

    @property
    def evaluation_steps(self) -> int:
        """Steps of an episode of the evaluation, at most."""

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole: bool
    ) -> AnyEnvironments:
        """Make the first `n_envs` environments of the run for rollouts of `steps`; `whole`: each is an episode."""

    def reward(self, settings: RewardSettings) -> Callable[[Any], Floats]:
        """Return the function of a reward mode with its constants bound, from facts to rewards [E]."""


AnyEnvironments = Environments[Any, Any]


def paths_below(path: RngPath, n_envs: int) -> list[RngPath]:
    """Return the address of every environment of an episode at `path`."""
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
        start, self._start = self._start, time.monotonic()
        spent = {f"{name}_s": phase.spent_s for name, phase in self._phases.items()}
        for phase in self._phases.values():
            phase.spent_s = 0.0
        return Timing(total_s=self._start - start, **spent)


S = TypeVar("S", bound=Seen, contravariant=True)


class Controller(ABC, Generic[S]):
    """Decides for all environments of a run at once; draws no random number of its own."""

    def begin_episode(self, n_envs: int) -> None:
        """Reset all state of earlier episodes."""

    @abstractmethod
    def decide(self, view: S, uniforms: Floats) -> Decisions:
        """Return one decision per environment, [E, head], valid under `view.masks`; `uniforms` [E, head] in [0, 1)."""

    def exclude(self, envs: Bools) -> None:
        """Mark environments [E] that ended before their first decision; decisions for them have no effect."""

    def reward(self, rewards: Floats, done: Bools, cut: Cut | None = None) -> None:
        """Take the rewards [E] of the last decision, the environments [E] that ended with it, and what was cut off."""


@dataclass(frozen=True, kw_only=True)
class AboutTask:
    """Results of the preflight about a task, as in a Machine."""

    tasks: tuple[TaskFacts, ...] = ()
    rewards: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    user_rewards: tuple[UserReward, ...] = ()
    trainer: TrainerFacts | None = None
    task_problem: str = ""
    reward_problems: dict[str, str] = field(default_factory=dict)  # by group
    controller_problems: dict[str, str] = field(default_factory=dict)  # by group


class Kind(ABC):
    """A kind of task. An entry of workers/kinds is a file with `KIND`, an instance of a subclass."""

    ours = False  # whether its runs execute only this package's code, apart from rewards
    smaller = "a smaller batch needs"  # less memory

    @abstractmethod
    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Examine a task before any run; `doing` is called with each stage."""

    def step_s(self, questions: Questions, device: str) -> float:
        """Return the seconds of a run's step on a GPU; 0: not timed."""
        return 0.0

    @abstractmethod
    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], Any]:
        """Return the function that makes the runs of one worker; it may keep data between them."""

    def controller(self, spec: RunSpec) -> Controller[Any]:
        """Make the controller that `spec` names."""
        raise ValueError(f"no controller {spec.settings.controller.name!r} for {spec.task}")

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> World:
        """Return the world of the policy at `path`; ValueError if that would run code outside the modules `importable`.
        """
        raise ValueError(f"{path}: its task {spec.task!r} is code, which a policy file must not cause to run")

    def summary(self, episodes: Sequence[EnvEpisode]) -> tuple[dict[str, Any], str]:
        """Return means over episodes of an evaluation, by name, and in words."""
        known = {name: [one.measures[name] for one in episodes] for name in episodes[0].measures}
        means = {name: float(np.mean([v for v in found if v is not None] or [np.nan])) for name, found in known.items()}
        outcome = float(np.mean([one.outcome for one in episodes]))
        words = ", ".join((f"outcome {outcome:.2f}", *(f"{name} {mean:.2f}" for name, mean in means.items())))
        return {"outcome": outcome, "measures": means}, words


def kind_of(task: str) -> Kind:
    """Return the kind of a task, an entry of workers/kinds."""
    kind: Kind = catalog.entry("workers.kinds", kind_of_task(task), "KIND")
    return kind
