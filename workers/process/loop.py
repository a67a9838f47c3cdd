"""A worker's main loop: receive a run, execute it milestone by milestone, report, continue when released.

    Assign → warm-up → Ready → [Release → episode → EpisodeFinished] × E → Release → evaluation → Evaluated → Release

An Assign with a milestone > 0 resumes a run: Ready names the milestone of the restored state, from which episodes
continue. A Cancel ends the run within a few steps, and the worker waits for the next Assign.

A worker that only guards a command imports no torch, so this module imports none.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from esper_ab.contracts import messages, worker_order
from esper_ab.contracts.errors import NO_ROOM, OutOfMemory
from esper_ab.contracts.records import Checkpoint
from workers.environments import Kind, OnStep, RunSession, kind_of
from workers.process.link import Link
from workers.storage import durable
from workers.storage.durable import Damaged

_BETWEEN_REPORTS_S = 0.02  # of progress
_ASK_FOR_ROOM_S = 2.0  # time between two attempts to write to a full disk

T = TypeVar("T")


class _Stopped(Exception):
    """The coordinator sent Stop during a run."""


class _Cancelled(Exception):
    """The coordinator cancelled this worker's run."""


class Makers:
    """Creates runs of every kind of task; objects that a kind caches between runs stay on this worker."""

    def __init__(self, order: worker_order.WorkerOrder) -> None:
        self.folder = Path(order.experiment_dir)
        self._lane = order.lane
        self._runs: dict[Kind, Callable[[worker_order.RunSpec], RunSession]] = {}
        self.only_our_code = True  # no code of the user or of an environment has run

    def session(self, spec: worker_order.RunSpec) -> RunSession:
        """Create a run with the kind of its task."""
        kind = kind_of(spec.task)
        self.only_our_code &= kind.runs_only_our_code and not spec.reward_code
        if kind not in self._runs:
            self._runs[kind] = kind.runs(self._lane, self.folder)
        return self._runs[kind](spec)


def serve(link: Link, order: worker_order.WorkerOrder, log_to: Callable[[Path, str], None]) -> bool:
    """Execute runs until Stop, each with its own log; return True if only this package's code was executed."""
    makers = Makers(order)
    while True:
        message = link.orders()
        if isinstance(message, messages.Stop):
            _say(f"stop: {message.reason}")
            return makers.only_our_code
        if isinstance(message, messages.Assign):
            spec = message.spec
            try:
                open_log = functools.partial(log_to, makers.folder, spec.log_file)
                _when_there_is_room(link, spec, message.milestone, open_log)
                _run(link, order, message, makers)
            except _Cancelled as cancellation:
                _say(f"{spec.ref.name}: given up: {cancellation}")
            except _Stopped as stop:
                _say(f"stop: {stop}")
                return makers.only_our_code
            except _gpu_memory_errors() as error:
                raise OutOfMemory(_how_much(spec)) from error


def _gpu_memory_errors() -> tuple[type[Exception], ...]:
    """Return torch's error for a full GPU; none where torch has not been imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        return ()
    return (torch.OutOfMemoryError,)


def _how_much(spec: worker_order.RunSpec) -> str:
    """Return a sentence with the GPU memory that a run took before memory ran out, and the settings that need less."""
    import torch

    peak = total = 0
    for gpu in range(torch.cuda.device_count()):
        peak_here = torch.cuda.max_memory_allocated(gpu)
        total_here = torch.cuda.get_device_properties(gpu).total_memory
        peak, total = max((peak, total), (peak_here, total_here))
    taken_memory = f"{peak / 2**30:.1f} GiB of {total / 2**30:.1f} GiB"
    smaller_words = kind_of(spec.task).smaller
    return f"{spec.ref.device}: the run took up to {taken_memory}; {smaller_words} less"


def _run(link: Link, order: worker_order.WorkerOrder, assignment: messages.Assign, makers: Makers) -> None:
    """Execute one run: restore its recorded part, warm up, train the remaining episodes, evaluate."""
    spec = assignment.spec
    _say(f"{spec.ref.name} on {spec.ref.device}")
    session = makers.session(spec)
    start, damage_reports = _restore(makers.folder, session, assignment)
    warm_up_s = session.warm_up(_progress(link, spec, start, "warm-up"))
    link.send(messages.Ready(run=spec.ref, warm_up_s=round(warm_up_s, 3), milestone=start, damaged=damage_reports))
    _await_release(link, spec, start)
    for episode in range(start, spec.episodes):
        milestone = episode + 1
        on_step = _progress(link, spec, milestone, "train")
        on_update = _progress(link, spec, milestone, "update")
        record = session.train(episode, on_step, on_update)
        checkpoint = _save(link, session, order, milestone)
        link.send(messages.EpisodeFinished(run=spec.ref, record=record, checkpoint=checkpoint))
        _await_release(link, spec, milestone)
    milestone = spec.episodes + 1
    on_step = _progress(link, spec, milestone, "evaluate")
    evaluation = _when_there_is_room(link, spec, milestone, lambda: session.evaluate(makers.folder, on_step))
    link.send(messages.Evaluated(run=spec.ref, record=evaluation))
    _await_release(link, spec, milestone)
    _say(f"{spec.ref.name}: done")


def _restore(folder: Path, session: RunSession, assignment: messages.Assign) -> tuple[int, tuple[str, ...]]:
    """Restore `session` to the end of its records, or as far as intact checkpoints reach.

    Return the milestone of the restored state, and one sentence for every damaged checkpoint.
    """

    def resume(data: bytes) -> None:
        try:
            session.resume_from(data)
        except durable.FOREIGN as error:
            raise Damaged(f"is no checkpoint of this run: {durable.reason(error)}") from None

    if session.stateless:
        return assignment.milestone, ()
    milestone, damage_reports = durable.take_up(folder, assignment.spec.ref, assignment.checkpoints, resume)
    for sentence in damage_reports:
        _say(sentence)
    if assignment.milestone > 0:
        begin_words = f"taken up after episode {milestone - 1}" if milestone else "begun anew"
        _say(f"{assignment.spec.ref.name}: {begin_words}")
    return milestone, damage_reports


def _save(link: Link, session: RunSession, order: worker_order.WorkerOrder, milestone: int) -> Checkpoint | None:
    """Save the session's state, if any, before the record is sent, so that every record has its checkpoint."""
    data = session.checkpoint()
    spec = session.spec
    if data is None:
        return None
    link.send(messages.Progress(run=spec.ref, milestone=milestone, step=spec.steps, phase="save"))
    store = functools.partial(durable.store, Path(order.experiment_dir), spec.ref, milestone, data, order.writer)
    return _when_there_is_room(link, spec, milestone, store)


def _when_there_is_room(link: Link, spec: worker_order.RunSpec, milestone: int, write: Callable[[], T]) -> T:
    """Call `write` and return its result.

    If the disk is full, report that, wait, and retry until `write` succeeds or the run ends.
    """
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
        link.send(messages.Progress(run=spec.ref, milestone=milestone, step=0, phase="disk full"))
        _listen(link, spec, _ASK_FOR_ROOM_S)


def _await_release(link: Link, spec: worker_order.RunSpec, milestone: int) -> None:
    """Wait for the release of `milestone`, sent when the milestone's record is on disk and the run may continue."""
    while True:
        message = _listen(link, spec, None)
        if not isinstance(message, messages.Release):
            continue
        if (message.run_name, message.milestone) == (spec.ref.name, milestone):
            return


def _listen(link: Link, spec: worker_order.RunSpec, timeout_s: float | None) -> messages.CoordinatorMessage | None:
    """Return the next message, or None after `timeout_s`; raise _Stopped for a Stop, _Cancelled for a Cancel."""
    message = link.receive(timeout_s)
    if isinstance(message, messages.Stop):
        raise _Stopped(message.reason)
    if isinstance(message, messages.Cancel) and message.run_name == spec.ref.name:
        raise _Cancelled(message.reason)
    return message


def _progress(link: Link, spec: worker_order.RunSpec, milestone: int, phase: str) -> OnStep:
    """Return a callback that reports progress, and raises _Cancelled if the run was cancelled.

    The callback does both at most every 20 ms, because some environments step in 0.1 ms and a report takes 0.02 ms. A
    Stop is not looked for, because a Stop can wait for the end of the episode.
    """
    next_at = 0.0

    def on_step(step: int) -> None:
        nonlocal next_at
        if (now_s := time.monotonic()) < next_at:
            return
        next_at = now_s + _BETWEEN_REPORTS_S
        link.send(messages.Progress(run=spec.ref, milestone=milestone, step=step, phase=phase))
        reason = link.cancelled()
        if reason is not None:
            raise _Cancelled(reason)

    return on_step


def _say(text: str) -> None:
    """Log one line to stderr: a worker in a thread shares stdout with the command's output."""
    with contextlib.suppress(OSError):  # a full disk must not end a run
        print(text, file=sys.stderr, flush=True)
