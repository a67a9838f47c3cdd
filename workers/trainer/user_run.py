"""What a user's trainer is handed: the run, and the points that it yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esper_ab.contracts.rng import PathPart, RngPath
from esper_ab.contracts.trainer import TrainerSettings
from workers.trainer.script import seed_at

State = bytes | dict[str, Any]


@dataclass(frozen=True)
class Point:
    """One point of a run's course: numbers by name, the outcome's among them, and all that is needed to go on."""

    metrics: Mapping[str, Any]
    state: State


class Run:
    """One run, as `train(run)` and `evaluate(run, state)` see it."""

    Point = Point

    def __init__(
        self, *, settings: TrainerSettings, points: int, path: RngPath, device: str, folder: Path,
        eval_episodes: int, on_step: Callable[[int], None], point: int = 0, state: State | None = None,
    ) -> None:  # fmt: skip
        """`path`: of the run's random numbers. `on_step` may raise, when the run is cancelled."""
        self.settings = settings
        self.points = points  # that `train` is to yield, in all
        self.point = point  # the first that it is to yield
        self.device = device  # for torch: "cpu", "cuda:0"
        self.folder = folder  # of this run alone
        self.eval_episodes = eval_episodes  # outcomes that `evaluate` may return as a list
        self.state_was_read = False
        self.on_step = on_step
        self._path, self._state = path, state

    @property
    def state(self) -> State | None:
        """The state to go on from, as it was yielded; None at the beginning."""
        self.state_was_read = True
        return self._state

    def seed(self, *address: PathPart) -> int:
        """Return a seed, 0 … 2^31 - 1: of this replicate and this address, and the same in every group."""
        path = self._path
        for part in address:
            path /= part
        return seed_at(path)

    def alive(self, step: int) -> None:
        """Tell that the trainer works, at step `step` of the present point; it ends here when the run is cancelled."""
        self.on_step(step)
