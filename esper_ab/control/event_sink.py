"""Pass every event of an experiment, once and in order, to the journal, the history and the observers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from esper_ab.contracts.errors import DiskFull, JournalError
from esper_ab.contracts.messages import Progress
from esper_ab.control.disk_space import DiskSpaceWait
from esper_ab.control.observers import Observer, ObserverThread
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
        if run := _unblocked_run(event):
            self._note(self._disk.stop_tracking(run))

    def flush(self) -> None:
        """Make all events so far visible to readers of the journal and to the observers."""
        self._note(self._disk.retry_until_room(self._journal.write))
        self._observers.tell()

    def commit(self) -> None:
        """Flush, and return once all events are durable on the disk."""
        self._note(self._disk.retry_until_room(self._journal.commit))
        self._observers.tell()

    def _note(self, pause: Incident | None) -> None:
        """Record a disk-full pause after it has ended."""
        if pause is not None:
            self.record(pause)

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


def _unblocked_run(event: AnyEvent) -> str:
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
