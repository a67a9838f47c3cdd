"""A run of a command. A worker that only guards a command imports no torch, so nothing here does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from pathlib import Path

from esper_ab.contracts import users_shell
from esper_ab.contracts.errors import CodeChanged
from esper_ab.contracts.failure_cause import cause_of_text
from esper_ab.contracts.files_below import folder_below
from esper_ab.contracts.outcome_summary import read_summary
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.contracts.source_files import source_sha256
from esper_ab.contracts.trainer import TrainerOrder, read_source
from esper_ab.contracts.worker_order import RunSpec
from workers.devices import pinned
from workers.environments import OnStep
from workers.kinds.trainer import interrupted, ports, running, words
from workers.kinds.trainer.code_tree import place_of
from workers.kinds.trainer.idling import IDLE_LIMITS, NEVER, IdleLimits, Watch
from workers.kinds.trainer.outcome_sources.left import Left
from workers.kinds.trainer.outcome_sources.read import has_outcome, read_outcome
from workers.kinds.trainer.session import TrainerSession
from workers.kinds.trainer.words import CommandLine


class CommandSession(TrainerSession):
    """A run of a command, whose only point is at its end."""

    def __init__(
        self, spec: RunSpec, experiment_dir: Path, uuids: Iterable[str], limits: IdleLimits = IDLE_LIMITS
    ) -> None:
        super().__init__(spec, experiment_dir)
        self._source = read_source(self.order.outcome)
        self._summary = read_summary(self.order.outcome_summary)
        self._pins = pinned.variables(uuids, spec.arithmetic)
        self._shell = users_shell.current()
        self._limits = limits if self.order.ends_idle else NEVER
        check_files(self.order, self.root)
        self._place = place_of(self.order, self.root)

    def train(self, episode: int, on_step: OnStep, on_update: OnStep) -> EpisodeRecord:
        """Run the command in its own folder, which is empty unless it continues from there, and read its outcome."""
        begin_s = time.perf_counter()
        signs = itertools.count(1)
        order = self.order
        out_folder = folder_below(self.root, order.out).resolve()
        line = CommandLine(self._place.reference, Path(self._place.directory), out_folder)
        own_values = line.own_values(
            words.seed_at(self.path), Path(order.out).parent.name, words.device_word(self._pins)
        )
        values = {**self.spec.settings.trainer, **own_values}
        interrupted.prepare_folder(self.root, order, line, values)
        log = self.root / self.spec.log_file
        left_output = Left(out_folder, log, log.stat().st_size if log.exists() else 0)
        watch = Watch(
            lambda: on_step(next(signs)),
            (out_folder, log),
            self._limits,
            lambda: has_outcome(self._source, left_output, self._summary),
        )
        with ports.claimed(order.reference) as port:
            running.run_script(
                line.words({**values, **port}),
                line.folder,
                running.environment(
                    self._shell, self._source, out_folder, self._pins, line.search_path, self._place.files
                ),
                (self.root, self.spec.log_file),
                watch,
                self._shell,
            )
        try:
            outcome = read_outcome(self._source, left_output, self._summary)
        except ValueError as error:
            raise running.ScriptFailed(str(error), cause_of_text(str(error))) from None
        self.point = 1
        self.done = repr(outcome).encode()
        return self._record(episode, outcome, {}, begin_s)

    def _restore_point(self, point: int, done_state: bytes) -> None:
        """Do nothing, because a command has no state before its end."""

    def _outcomes(self, done_state: bytes, on_step: OnStep) -> list[float]:
        """Return the outcome that was read after the command ended."""
        return [float(done_state)]


def check_files(order: TrainerOrder, root: Path) -> None:
    """Raise CodeChanged unless the files named by a command are unchanged since planning.

    `root`: the experiment directory, which has them if the run's group has a state of the code.
    """
    try:
        is_unchanged = not order.files or source_sha256(root / order.folder, order.files) == order.sha256
    except OSError:
        is_unchanged = False
    if not is_unchanged:
        raise CodeChanged(
            f"{', '.join(order.files)} in {root / order.folder}: changed since the experiment was planned; put it "
            "back, then resume"
        )
