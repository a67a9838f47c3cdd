"""The task kind for bandits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from esper_ab.contracts.machine import Questions, TaskFacts
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.contracts.settings import RewardSettings
from esper_ab.contracts.worker_order import Lane, RunSpec
from workers.arrays import Floats, Ints
from workers.environments import AboutTask, Controller, Kind, Spaces, Stopwatch
from workers.kinds.bandit.environments import BanditEnvironments, BanditSeen
from workers.run.session import Session

MEASURES = TaskMeasures(
    outcome=Measure(
        name="expected_payment",
        label="expected payment",
        unit="%",
        difference_unit="points",
        better="higher",
        low=0.0,
        high=100.0,
    ),
    measures=(Measure(name="best_arm", label="pulls of the best arm", unit="%", low=0.0, high=100.0),),
    margin=5.0,
)


def arms_of(task: str) -> int:
    """Return the number of arms in a task's name."""
    return int(task.removeprefix("bandit:"))


class BanditWorld:
    """The bandits of one run."""

    def __init__(self, spec: RunSpec) -> None:
        self._spec = spec
        self._arms = arms_of(spec.task)
        self.spaces = Spaces(
            observation_width=self._arms,
            head_names=("arm",),
            head_sizes=(self._arms,),
            observation_std_floor=0.1,
        )
        self.evaluation_steps = spec.steps

    def environments(
        self, reward: RewardSettings, steps: int, n_envs: int, stopwatch: Stopwatch, *, whole_episodes: bool
    ) -> BanditEnvironments:
        """Create the run's first `n_envs` bandits; every episode has `steps` pulls."""
        return BanditEnvironments(self._arms, steps, self._spec.env_devices[:n_envs])

    def reward(self, settings: RewardSettings) -> Callable[[Floats], Floats]:
        """Return the only reward: what was paid."""
        if settings.mode != "paid":
            raise ValueError(f"no reward mode {settings.mode!r} for bandits; the only one is paid")
        return lambda payments: payments


class RandomPulls(Controller[BanditSeen]):
    """Pulls every arm equally often."""

    def decide(self, view: BanditSeen, uniforms: Floats) -> Ints:
        """Return an arm per environment, [E, 1]."""
        arms = view.observation.shape[1]
        arms_pulled: Ints = np.minimum((uniforms * arms).astype(np.int64), arms - 1)
        return arms_pulled


class Bandit(Kind):
    """Bandits, which need no code but this package's."""

    runs_only_our_code = True

    def preflight(self, questions: Questions, doing: Callable[[str], None]) -> AboutTask:
        """Describe the task."""
        task = TaskFacts(
            name=questions.task,
            title="bandit",
            measures=MEASURES,
            kind="bandit",
            observation_width=arms_of(questions.task),
        )
        return AboutTask(tasks=(task,), rewards=("paid",), controllers=("random",))

    def runs(self, lane: Lane, experiment_dir: Path) -> Callable[[RunSpec], Session]:
        """Return a function that creates a run."""
        return lambda spec: Session(spec, BanditWorld(spec))

    def controller(self, spec: RunSpec) -> RandomPulls:
        """Return the only controller."""
        return RandomPulls()

    def world(self, path: Path, spec: RunSpec, importable: Collection[str], device: str) -> BanditWorld:
        """Return the world of a saved policy."""
        return BanditWorld(spec)


KIND = Bandit()
