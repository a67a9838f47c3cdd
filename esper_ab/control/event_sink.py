"""Pass every event of an experiment, once and in order, to the journal, the history and the observers."""

from __future__ import annotations

import logging
import queue
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from esper_ab.contracts.errors import DiskFull, Interrupted, JournalError
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.wording import shell_command
from esper_ab.control.rules.workers import Limits
from esper_ab.control.signals import CaughtSignals
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    ExperimentEnded,
    ExperimentStarted,
    Incident,
    RunEvaluated,
    RunReady,
)
from esper_ab.journal.file import Journal
from esper_ab.journal.fold import History

# --- observers -------------------------------------------------------------------------------------------------------
# Observers of an experiment. Whatever an observer does, it can neither break the experiment nor slow it down.


_PROGRESS_BACKLOG = 1000  # with more events waiting, progress messages are dropped, but never journalled events
_CLOSE_S = 5.0


Observed = AnyEvent | Progress | str  # text: a warning, which is shown at once and not journalled


class Observer(Protocol):
    """Receives all journalled events and signs of life in order, and all warnings, on a thread of its own.

    An event arrives after it was journalled. A warning arrives immediately, ahead of any events noted but not yet told.
    """

    def observe(self, event: Observed) -> None: ...


class ObserverThread:
    """Notifies observers from a thread with a queue. An observer that raises is logged once and dropped."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._queue: queue.SimpleQueue[Sequence[Observed] | None] = queue.SimpleQueue()
        self._untold: list[Observed] = []
        self._told = self._passed_on = 0  # numbers of events; the experiment's thread sets the first, ours the second
        self._thread = threading.Thread(target=self._tell_all, name="observers", daemon=True)
        self._thread.start()

    def note(self, event: AnyEvent | Progress) -> None:
        """Keep an event for the next `tell`; do nothing if there are no observers."""
        if self._observers:
            self._untold.append(event)

    def keep(self, kind: type[AnyEvent]) -> None:
        """Drop the noted events that are not instances of `kind`."""
        self._untold = [event for event in self._untold if isinstance(event, kind)]

    def tell(self) -> None:
        """Queue the noted events as one batch and return at once. Queueing them one by one would slow down every write.
        """
        events, self._untold = self._untold, []
        if not events:
            return
        if self._told - self._passed_on >= _PROGRESS_BACKLOG:
            events = [event for event in events if not isinstance(event, Progress)]
        self._put(events)

    def tell_at_once(self, text: str) -> None:
        """Queue this text immediately, ahead of the events that await the next `tell`."""
        self._put([text])

    def _put(self, events: Sequence[Observed]) -> None:
        self._told += len(events)
        self._queue.put(events)

    def close(self) -> None:
        """Wait a few seconds for the observers to catch up, then abandon any that is stuck."""
        self._queue.put(None)
        self._thread.join(_CLOSE_S)

    def _tell_all(self) -> None:
        while (events := self._queue.get()) is not None:
            for event in events:
                for observer in tuple(self._observers):
                    try:
                        observer.observe(event)
                    except Exception:
                        self._observers.remove(observer)
                        logging.getLogger(__name__).exception("%r failed and gets no further events", observer)
                self._passed_on += 1


# --- disk ------------------------------------------------------------------------------------------------------------
# When the disk is full, retry the write on the coordinator's only thread until there is room.
#
# Workers idle at the barrier meanwhile. Signals are polled between two tries. Ctrl-C ends the wait at once, because
# nothing else is in progress that could be finished first.


PHASE = "disk full"  # phase that a worker reports while it has no disk space for a checkpoint
_TRY_S = 1.0


class DiskSpaceWait:
    """Waits while the experiment's disk is full, and tells the user when the wait begins and when it ends."""

    def __init__(self, experiment_dir: Path, tell: Callable[[str], None]) -> None:
        self._experiment_dir, self._tell = experiment_dir, tell
        self._lack = f"no space on the disk of {experiment_dir}"
        self._go_on = "run the command again"  # until this process has recorded something
        self._limit_s = Limits().disk_full_s
        self._signals: CaughtSignals | None = None
        self._without: dict[str, float] = {}  # run whose worker waits for disk space -> since when (monotonic, s)
        self.given_up = False  # if True, a full disk is an error at once

    @contextmanager
    def heeding(self, signals: CaughtSignals, limit_s: float) -> Iterator[None]:
        """Inside this context, poll signals during a wait. From now on, a wait lasts at most `limit_s`."""
        self._signals, self._limit_s = signals, limit_s
        try:
            yield
        finally:
            self._signals = None

    def await_for(self, write: Callable[[], None]) -> Incident | None:
        """Retry `write` until the disk has room; return an incident if there was a wait.

        Raises DiskFull after the limit, and Interrupted on Ctrl-C or SIGTERM. Raises JournalError at once, because
        waiting cannot repair the journal.
        """
        began, waiting = time.monotonic(), False
        while True:
            try:
                write()
            except DiskFull:
                if self.given_up:
                    raise
            except JournalError:
                self.given_up = True
                raise
            else:
                break
            if not waiting:
                self._say_that_it_waits("the journal")
            waiting = True
            self._pause(began)
        self._go_on = f"`{shell_command('resume', self._experiment_dir)}`"
        if not waiting:
            return None
        paused_s = time.monotonic() - began
        self._tell(f"the disk has space again after {paused_s:.0f} s: continuing")
        return _entry("", paused_s, "the journal")

    def note(self, progress: Progress) -> Incident | None:
        """Track a worker that waits for room for a checkpoint; return an incident when the worker continues.

        Raises DiskFull when the wait exceeds the limit. The worker itself would retry until it is killed.
        """
        run = progress.run.name
        if progress.phase != PHASE:
            return self.went_on(run)
        if not self._without:
            self._say_that_it_waits(f"a checkpoint of {run}")
        began = self._without.setdefault(run, time.monotonic())
        if time.monotonic() - began >= self._limit_s:
            self._give_up()
        return None

    def went_on(self, run: str) -> Incident | None:
        """Stop tracking a run whose worker has continued; return an incident if the worker had waited."""
        began = self._without.pop(run, None)
        if began is None:
            return None
        if not self._without:
            self._tell("the disk has space for checkpoints again: continuing")
        return _entry(run, time.monotonic() - began, "a checkpoint")

    def _pause(self, began: float) -> None:
        """Sleep for one second, or less if a signal arrives or the limit is near."""
        left = began + self._limit_s - time.monotonic()
        if left <= 0:
            self._give_up()
        poll = select.poll()  # select() cannot handle descriptors above 1023
        if self._signals:
            poll.register(self._signals.descriptor, select.POLLIN)
        poll.poll(1000 * min(left, _TRY_S))
        caught = self._signals.read() if self._signals else ()
        if caught:
            self.given_up = True
            raise Interrupted(f"stopped by {caught[0].name} while there was {self._lack}; all records so far are kept")

    def _give_up(self) -> None:
        self.given_up = True
        kept = f"{self._lack} for {self._limit_s:.0f} s; all records so far are kept"
        raise DiskFull(f"{kept}: free some space, then {self._go_on}")

    def _say_that_it_waits(self, what: str) -> None:
        self._tell(f"{self._lack} for {what}: waiting up to {self._limit_s:.0f} s")


def _entry(run: str, paused_s: float, what: str) -> Incident:
    """Return an incident for a pause: nothing was lost, but durations measured during the pause are longer."""
    return Incident(
        category="disk_full", run_name=run, detail=f"paused for {paused_s:.1f} s: no space on the disk for {what}",
    )


class EventSink:
    """Appends events to the journal, folds them into the history and passes them to the observers.

    When the disk is full, `flush` and `commit` wait for room, or raise DiskFull or Interrupted. `show` raises DiskFull
    when a worker has waited too long for room.
    """

    def __init__(self, journal: Journal, history: History, observers: Sequence[Observer]) -> None:
        """`history`: the fold of the events in the journal or, for a new journal, of the first event to record."""
        self._journal = journal
        self.history = history
        self._observers = ObserverThread(observers)
        self._disk = DiskSpaceWait(journal.experiment_dir, self.warn)

    def heeding(self, signals: CaughtSignals, disk_full_s: float) -> AbstractContextManager[None]:
        """Inside this context, a signal ends a wait for disk space. From now on, a wait lasts at most `disk_full_s`."""
        return self._disk.heeding(signals, disk_full_s)

    def record(self, event: AnyEvent) -> None:
        """Fold one event into the history and `append` it."""
        if not isinstance(event, ExperimentStarted):  # the history was made from it
            self.history.add(event)
        self.append(event)

    def append(self, event: AnyEvent) -> None:
        """Journal an event that the history already has. `flush` writes it to the file; `commit` syncs the file."""
        self._journal.append(event)
        self._observers.note(event)
        if run := _run_that_goes_on(event):
            self._note(self._disk.went_on(run))

    def flush(self) -> None:
        """Make all events so far visible to readers of the journal and to the observers."""
        self._note(self._disk.await_for(self._journal.write))
        self._observers.tell()

    def commit(self) -> None:
        """Flush, and return once all events are durable on the disk."""
        self._note(self._disk.await_for(self._journal.commit))
        self._observers.tell()

    def _note(self, paused: Incident | None) -> None:
        """Record a disk-full pause after it has ended."""
        if paused is not None:
            self.record(paused)

    def show(self, progress: Progress) -> None:
        """Pass a sign of life to the observers only; signs of life are never journalled."""
        self._observers.note(progress)
        self._note(self._disk.note(progress))

    def warn(self, text: str) -> None:
        """Show the observers a warning immediately, ahead of events not yet flushed. Warnings are not journalled."""
        self._observers.tell_at_once(text)

    def close(self) -> None:
        """Commit, then close the journal and the observers.

        If an earlier wait for disk space was abandoned, do not wait again.
        """
        try:
            if not self._disk.given_up:
                self.commit()
        finally:
            try:
                self._journal.close()
            except (DiskFull, JournalError):  # an earlier write has already raised it
                self._observers.keep(ExperimentEnded)  # observers hear of the end even if it could not be recorded
            self._observers.tell()
            self._observers.close()


def _run_that_goes_on(event: AnyEvent) -> str:
    """Return the run that no longer waits for disk space, because it has its file or its worker works on it no more.

    Return "" if the event concerns no such run.
    """
    match event:
        case EpisodeRecorded(record=record) | RunEvaluated(record=record):
            return record.run.name
        case RunReady(run=run):
            return run.name
        case Incident(category="worker_death" | "hung_worker" | "dropped_pair" | "cancelled", run_name=name):
            return name
    return ""
