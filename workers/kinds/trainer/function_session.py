"""A run of a function. A worker that only guards a function's process imports no torch, so nothing here does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from pathlib import Path, PurePath

from esper_ab.contracts import users_shell
from esper_ab.contracts.errors import CodeChanged
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.worker_order import RunSpec
from workers.devices import pinned
from workers.environments import OnStep
from workers.kinds.trainer import words
from workers.kinds.trainer.code_tree import place_of
from workers.kinds.trainer.function_call import CallPlace, called, thinned
from workers.kinds.trainer.function_messages import Call, Numbers
from workers.kinds.trainer.idling import Watch
from workers.kinds.trainer.session import TrainerSession


class FunctionSession(TrainerSession):
    """A run of a function, which is called once, before the first point; the points are those that it returned."""

    def __init__(self, spec: RunSpec, experiment_dir: Path, uuids: Iterable[str]) -> None:
        super().__init__(spec, experiment_dir)
        self._pins = pinned.variables(uuids, spec.arithmetic)
        self._shell = users_shell.current()
        self._curve: list[Numbers] = []
        self._kept = self._check_copy()
        self._place = place_of(self.order, self.root)
        if self._place.files is not None:
            self._kept = ""  # the state's own files are the copy

    def _check_copy(self) -> str:
        """Return the folder of the function's copy, "" if it is installed; CodeChanged unless it is as planned."""
        order = self.order
        if not order.files:
            return ""
        folder = self.root / order.folder
        try:
            is_unchanged = source_sha256(folder, order.files) == order.sha256
        except OSError:
            is_unchanged = False
        if not is_unchanged:
            raise CodeChanged(
                f"{order.reference}: its copy in {folder} was changed since the experiment was planned; put it back, "
                "then resume"
            )
        return str(folder.resolve())

    def train(self, episode: int, on_step: OnStep, on_update: OnStep) -> EpisodeRecord:
        """Call the function before the first point; return the record of a point of what it returned."""
        begin_s = time.perf_counter()
        if not self._curve:
            self._curve = thinned(self._call(on_step), self.spec.episodes)
        on_step(0)
        point = self._curve[episode]
        outcome = point[self.order.outcome]
        self.point = episode + 1
        self.done = repr(outcome).encode()
        return self._record(episode, outcome, point, begin_s)

    def _call(self, on_step: OnStep) -> list[Numbers]:
        order = self.order
        signs = itertools.count(1)
        out = words.fresh_folder(self.root, order.out).resolve()
        place = CallPlace(
            root=self.root,
            folder=PurePath(order.out).parent.as_posix(),
            log=self.spec.log_file,
            pins=self._pins,
            shell=self._shell,
        )
        group = self.spec.ref.group_id
        call = Call(
            reference=self._place.reference,
            directory=self._place.directory,
            tree=order.tree,
            root=str(self.root.resolve()),
            kept=self._kept,
            files=order.files,
            groups={group: self.spec.settings.trainer},
            group=group,
            seed=words.seed_at(self.path),
            filled={"out": str(out), "device": words.device_word(self._pins)},
        )
        curve = called(call, place, Watch(lambda: on_step(next(signs)))).curve(call.name, order.outcome)
        names = curve[0].keys() - {order.outcome}
        missing_names = set(order.metrics) - names  # a state of the code may have metrics that the others lack
        if missing_names or (order.tree is None and names != set(order.metrics)):
            planned_names = ", ".join(order.metrics) or "none"
            raise ValueError(
                f"{call.name} returned the numbers {', '.join(sorted(names)) or 'none'} besides the outcome, but "
                f"{planned_names} in the rehearsal; return the same in every run"
            )
        return curve

    def _restore_point(self, point: int, done: bytes) -> None:
        """Do nothing, because a function has no state before its end."""

    def _outcomes(self, done: bytes, on_step: OnStep) -> list[float]:
        """Return the outcome of the last point."""
        return [float(done)]
