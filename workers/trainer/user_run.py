"""What a user's trainer is handed: the run, and the points that it yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from esper_ab.contracts.rng import PathPart, RngPath
from esper_ab.contracts.trainer import TrainerSettings
from workers.trainer.script import seed_at

State = bytes | dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One point of a run's course: numbers by name, the outcome's among them, and all that is needed to go on."""

    metrics: Mapping[str, Any]
    state: State


@dataclass(kw_only=True)
class Run:
    """One run, as `train(run)` and `evaluate(run, state)` see it."""

    Point: ClassVar = Point
    settings: TrainerSettings
    points: int  # that `train` is to yield, in all
    point: int = 0  # the first that it is to yield
    device: str  # for torch: "cpu", "cuda:0"
    folder: Path  # of this run alone
    eval_episodes: int  # outcomes that `evaluate` may return as a list
    rng: RngPath  # of the run's random numbers
    on_step: Callable[[int], None]  # raises when the run is cancelled
    given: State | None = None
    state_was_read: bool = False

    @property
    def state(self) -> State | None:
        """The state to go on from, as it was yielded; None at the beginning."""
        self.state_was_read = True
        return self.given

    def seed(self, *address: PathPart) -> int:
        """Return a seed, 0 … 2^31 - 1: of this replicate and this address, and the same in every group."""
        path = self.rng
        for part in address:
            path /= part
        return seed_at(path)

    def alive(self, step: int) -> None:
        """Tell that the trainer works, at step `step` of the present point; it ends here when the run is cancelled."""
        self.on_step(step)
