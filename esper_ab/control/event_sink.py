"""Where every event of an experiment goes, once and in order: the journal, the history, the observers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from esper_ab.contracts.errors import DiskFull, JournalError
from esper_ab.contracts.messages import Progress
from esper_ab.control.disk import DiskSpaceWait
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
    """Appends events to the journal, folds them and tells the observers of them.

    Without room on the disk `flush` and `commit` wait and return later, or raise DiskFull or Interrupted; `show` raises
    DiskFull when a worker has waited for room too long.
    """

    def __init__(self, journal: Journal, history: History, observers: Sequence[Observer]) -> None:
        """`history`: the fold of what the journal holds already, or of the first line that is yet to be recorded."""
        self._journal = journal
        self.history = history
        self._observers = ObserverThread(observers)
        self._disk = DiskSpaceWait(journal.experiment_dir, self.warn)

    def heeding(self, signals: CaughtSignals, disk_full_s: float) -> AbstractContextManager[None]:
        """While entered, a wait for room ends at a signal; from now on it ends after `disk_full_s` seconds."""
        return self._disk.heeding(signals, disk_full_s)

    def record(self, event: AnyEvent) -> None:
        """Fold one event into the history and `append` it."""
        if not isinstance(event, ExperimentStarted):  # with which the history began
            self.history.add(event)
        self.append(event)

    def append(self, event: AnyEvent) -> None:
        """Journal an event that the history has: in the file after the next `flush`, on disk after a `commit`."""
        self._journal.append(event)
        self._observers.note(event)
        if run := _run_that_goes_on(event):
            self._note(self._disk.went_on(run))

    def flush(self) -> None:
        """Let readers of the journal and the observers know what has happened since the last time."""
        self._note(self._disk.await_for(self._journal.write))
        self._observers.tell()

    def commit(self) -> None:
        """The same, and return when it is on the disk."""
        self._note(self._disk.await_for(self._journal.commit))
        self._observers.tell()

    def _note(self, paused: Incident | None) -> None:
        """What is said of a wait for room, once there is some."""
        if paused is not None:
            self.record(paused)

    def show(self, progress: Progress) -> None:
        """Tell the observers only: signs of life are never journalled."""
        self._observers.note(progress)
        self._note(self._disk.note(progress))

    def warn(self, text: str) -> None:
        """Show the observers a warning at once, before the events noted so far; it is not journalled."""
        self._observers.tell_at_once(text)

    def close(self) -> None:
        """Commit and let go of the experiment; what did not find room before is not waited for again."""
        try:
            if not self._disk.given_up:
                self.commit()
        finally:
            try:
                self._journal.close()
            except (DiskFull, JournalError):  # raised before, by whoever waited
                self._observers.keep(ExperimentEnded)  # it has ended, whether or not that could be recorded
            self._observers.tell()
            self._observers.close()


def _run_that_goes_on(event: AnyEvent) -> str:
    """The run whose worker waits for room no more: it has its checkpoint or policy, or is gone; "" for none."""
    match event:
        case EpisodeRecorded(record=record) | RunEvaluated(record=record):
            return record.run.name
        case RunReady(run=run):
            return run.name
        case Incident(category="worker_death" | "hung_worker" | "dropped_pair", run_name=name):
            return name
    return ""
