"""A run of a Python trainer: the session that calls the user's functions, point by point."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.errors import CodeChanged
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.contracts.trainer import TrainerOrder
from esper_ab.contracts.worker_order import RunSpec
from workers.environments import OnStep
from workers.kinds.trainer import module, words
from workers.kinds.trainer.code_tree import place_of
from workers.kinds.trainer.module import Point, Run, State
from workers.kinds.trainer.session import TrainerSession
from workers.user_code.state_of_code import enter


def _planned(order: TrainerOrder, experiment_dir: Path) -> module.PythonTrainer:
    """Return the trainer as it was planned: the copy of its file or, in its state of the code, the file itself."""
    place = place_of(order, experiment_dir)
    if place.files is None:
        return module.as_planned(order, experiment_dir)
    if threading.current_thread() is not threading.main_thread():
        raise ValueError("a state of the code needs a process of its own: resume with `--launcher local`")
    enter(place.files.folder, place.files.module_folders, place.files.moved)
    trainer, code = module.load(place.reference)
    if code.sha256 != order.sha256:
        raise CodeChanged(
            f"{place.files.top}: its files were changed since the run was planned; resume writes them anew"
        )
    return trainer


class PythonSession(TrainerSession):
    """A run of a Python trainer, whose file is executed as it was at planning time."""

    def __init__(self, spec: RunSpec, experiment_dir: Path, device: str) -> None:
        super().__init__(spec, experiment_dir)
        self._trainer = _planned(self.order, experiment_dir)
        self._device = device
        self._points: Iterator[Point] | None = None
        self._run = self._new_run(0, None)

    def _new_run(self, point: int, restored_state: State | None) -> Run:
        return Run(
            settings=self._trainer.settings(self.spec.settings.trainer),
            points=self.spec.episodes,
            rng=self.path,
            device=self._device,
            folder=self.root / self.order.out,
            eval_episodes=self.spec.eval_episodes,
            on_step=lambda step: None,
            point=point,
            given=restored_state,
        )

    def _restore_point(self, point: int, done_state: bytes) -> None:
        self._run = self._new_run(point, module.restored(done_state))

    def train(self, episode: int, on_step: OnStep, on_update: OnStep) -> EpisodeRecord:
        """Advance the trainer to its next point; the trainer waits at its `yield` until the release."""
        begin_s = time.perf_counter()
        self._run.on_step = on_step
        if self._points is None:
            if episode == 0:
                words.fresh_folder(self.root, self.order.out)
            self._points = self._trainer.train(self._run)
        on_step(0)
        metrics, done_state = module.next_point(self._points, episode, self._run, self.order.outcome)
        names = metrics.keys() - {self.order.outcome}
        missing_names = set(self.order.metrics) - names  # a state of the code may have metrics that the others lack
        if missing_names or (self.order.tree is None and names != set(self.order.metrics)):
            planned_names = ", ".join(self.order.metrics) or "none"
            raise ValueError(
                f"point {episode} has the metrics {', '.join(sorted(names)) or 'none'} in addition to the outcome, but "
                f"the first had {planned_names}; yield the same metrics at every point"
            )
        self.point = episode + 1
        self.done = done_state
        return self._record(episode, metrics[self.order.outcome], metrics, begin_s)

    def _outcomes(self, done_state: bytes, on_step: OnStep) -> list[float]:
        """Return the outcomes that the trainer's `evaluate` gives for a copy of the last state."""
        self._run.on_step = on_step
        outcomes = module.outcomes_of(
            self._trainer.evaluate(self._run, module.restored(done_state)), self.order.outcome
        )
        if len(outcomes) != self.spec.eval_episodes:
            raise ValueError(f"evaluate returned {len(outcomes)} outcomes; {self.spec.eval_episodes} are planned")
        return outcomes
