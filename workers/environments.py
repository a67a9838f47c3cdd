"""The seam between runs and the kinds of task: what a session, an episode and a policy know of environments.

    seen = environments.begin(paths)
    while seen.alive.any():
        happened, seen = environments.step(decisions)
    ended = environments.ends()

E environments of one run, side by side. Whatever they draw has an address below their paths (contracts/rng.py).
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
    """What a decision may depend on, for all environments at once; a kind of task adds what its controllers need."""

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
    """What a policy has to see and to decide."""

    observation_width: int
    head_names: tuple[str, ...]  # or those of the dimensions, where decisions are continuous
    head_sizes: tuple[int, ...]  # choices per head; empty where decisions are continuous
    observation_std_floor: float  # smallest standard deviation by which an observation is divided
    first_bias: tuple[float, ...] = ()  # where a policy's logits of head 0 start; empty: at 0


@dataclass(frozen=True, kw_only=True)
class Cut:
    """What became of episodes besides their own ends."""

    # [E] whose episode was cut off by a limit, or whose rollout ends here: what it would have earned from there on
    # counts, as far as the policy can tell it from the observation `last` [E, width].
    truncated: Bools
    last: Floats32
    restarted: Bools  # [E] that ended, and have begun another episode in the same rollout
    goes_on: Bools  # [E] that go on in the next rollout where this one ends


@dataclass(frozen=True, kw_only=True)
class Happened(Generic[Facts_co]):
    """What came of one step's decisions."""

    facts: Facts_co  # what a reward of this kind may know of the step; later steps do not change it
    ended: Bools  # [E] whose episode ended with this step, or whose rollout did
    penalty: Floats | None = None  # [E] added to the reward of those that ended under every mode
    cut: Cut | None = None  # None: every episode ends by itself, with the rollout at the latest


@dataclass(frozen=True)
class Ended:
    """What remains of an episode."""

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
        """Do what was decided in every environment that is alive."""

    def ends(self) -> Ended:
        """Return what the episode came to; call once, after its last step."""

    def carried(self) -> dict[str, Any]:
        """Return what outlives an episode, as plain containers of tensors and builtins; empty when nothing does."""

    def take_up(self, carried: dict[str, Any]) -> Bools:
        """Go on from what `carried` returned; called before the first episode.

        Returns which environments [E] are in the middle of an episode; the others begin the next one afresh. When it
        raises an error of `state_bytes.FOREIGN`, nothing was taken up and all begin afresh.
        """


class World(Protocol):
    """One run's task: what makes its environments and binds its rewards. An entry of workers/kinds makes it."""

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
        """Take which environments [E] ended before their first decision; what is decided for them has no effect."""

    def reward(self, rewards: Floats, done: Bools, cut: Cut | None = None) -> None:
        """Take the rewards [E] of the last decision, which environments [E] ended with it, and what cut them off."""


@dataclass(frozen=True, kw_only=True)
class AboutTask:
    """What the preflight finds out about a task, as a Machine has it."""

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

    ours = False  # whether its runs execute nothing but this package, but for rewards
    smaller = "a smaller batch needs"  # less memory

    @abstractmethod
    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Find out about a task before anything is spent; `doing` is told what happens now."""

    def step_s(self, questions: Questions, device: str) -> float:
        """Time a step of a run on a GPU; 0: it is not timed."""
        return 0.0

    @abstractmethod
    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], Any]:
        """Return what makes the runs of one worker; what it keeps between them stays on that worker."""

    def controller(self, spec: RunSpec) -> Controller[Any]:
        """Make the controller that `spec` names."""
        raise ValueError(f"no controller {spec.settings.controller.name!r} for {spec.task}")

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> World:
        """Return the world of the policy at `path`; ValueError where that would run code but modules `importable`."""
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
