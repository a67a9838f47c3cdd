"""Where every event of an experiment goes, once and in order: the journal, the history, the observers."""

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
# Observers of an experiment: whatever they do with what they are told, they neither break it nor slow it down.


_PROGRESS_BACKLOG = 1000  # beyond it signs of life are not told; journalled events always are
_CLOSE_S = 5.0


Observed = AnyEvent | Progress | str  # a text: what the user should see at once and the journal need not keep


class Observer(Protocol):
    """Is told, on a thread of its own, every journalled event and sign of life, in order, and warnings.

    An event comes once it is in the journal, a warning at once: before the events of its round.
    """

    def observe(self, event: Observed) -> None: ...


class ObserverThread:
    """Tells observers from a thread with a queue. One that raises is named once in the log and told no more."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._queue: queue.SimpleQueue[Sequence[Observed] | None] = queue.SimpleQueue()
        self._untold: list[Observed] = []
        self._told = self._passed_on = 0  # events; the first is of the experiment's thread, the second of ours
        self._thread = threading.Thread(target=self._tell_all, name="observers", daemon=True)
        self._thread.start()

    def note(self, event: AnyEvent | Progress) -> None:
        """Keep for the next `tell`, as long as there is anybody to tell."""
        if self._observers:
            self._untold.append(event)

    def keep(self, kind: type[AnyEvent]) -> None:
        """Forget what was noted and is not of this kind."""
        self._untold = [event for event in self._untold if isinstance(event, kind)]

    def tell(self) -> None:
        """Tell what was noted, and return at once. One by one it would hold up every write."""
        events, self._untold = self._untold, []
        if not events:
            return
        if self._told - self._passed_on >= _PROGRESS_BACKLOG:
            events = [event for event in events if not isinstance(event, Progress)]
        self._put(events)

    def tell_at_once(self, text: str) -> None:
        """Tell this, and not yet what was noted."""
        self._put([text])

    def _put(self, events: Sequence[Observed]) -> None:
        self._told += len(events)
        self._queue.put(events)

    def close(self) -> None:
        """Let the observers catch up for a few seconds; one that is stuck is left behind."""
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
                        logging.getLogger(__name__).exception("%r failed and is told no more", observer)
                self._passed_on += 1


# --- disk ------------------------------------------------------------------------------------------------------------
# When the disk is full, retry the write on the coordinator's only thread until there is room.
#
# Workers idle at the barrier meanwhile. Signals are polled between two tries, so Ctrl-C ends the wait; nothing is in
# progress then that could be finished in order.


PHASE = "disk full"  # of the sign of life of a worker that has no room for a checkpoint
_TRY_S = 1.0


class DiskSpaceWait:
    """Waits for room on an experiment's disk, and says so once when it begins and once when it goes on."""

    def __init__(self, experiment_dir: Path, tell: Callable[[str], None]) -> None:
        self._experiment_dir, self._tell = experiment_dir, tell
        self._lack = f"no room on the disk of {experiment_dir}"
        self._go_on = "give the command again"  # as long as this process has recorded nothing
        self._limit_s = Limits().disk_full_s
        self._signals: CaughtSignals | None = None
        self._without: dict[str, float] = {}  # runs whose workers have no room, since when (monotonic, s)
        self.given_up = False  # once True, a full disk is an error at once

    @contextmanager
    def heeding(self, signals: CaughtSignals, limit_s: float) -> Iterator[None]:
        """While entered, look for signals while waiting; from now on wait for `limit_s` at most."""
        self._signals, self._limit_s = signals, limit_s
        try:
            yield
        finally:
            self._signals = None

    def await_for(self, write: Callable[[], None]) -> Incident | None:
        """Call `write` until it finds room; an entry about the wait, if there was one.

        DiskFull after the limit, Interrupted on Ctrl-C or SIGTERM; JournalError, which no waiting mends, at once.
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
        self._tell(f"there is room again after {paused_s:.0f} s: going on")
        return _entry("", paused_s, "the journal")

    def note(self, progress: Progress) -> Incident | None:
        """Follow a worker's wait for room for a checkpoint; return an entry about the wait when the worker goes on.

        DiskFull when the wait lasts longer than the limit: the worker itself tries as long as nobody ends it.
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
        """Wait no more for what a worker says of this run, for it has; return an entry if it did wait."""
        began = self._without.pop(run, None)
        if began is None:
            return None
        if not self._without:
            self._tell("there is room for checkpoints again: going on")
        return _entry(run, time.monotonic() - began, "a checkpoint")

    def _pause(self, began: float) -> None:
        """A second, or less when there is a signal or the limit is near."""
        left = began + self._limit_s - time.monotonic()
        if left <= 0:
            self._give_up()
        poll = select.poll()  # select() knows no descriptor beyond 1023
        if self._signals:
            poll.register(self._signals.descriptor, select.POLLIN)
        poll.poll(1000 * min(left, _TRY_S))
        caught = self._signals.read() if self._signals else ()
        if caught:
            self.given_up = True
            raise Interrupted(f"stopped by {caught[0].name} while there was {self._lack}; what was recorded is kept")

    def _give_up(self) -> None:
        self.given_up = True
        kept = f"{self._lack} for {self._limit_s:.0f} s; what was recorded is kept"
        raise DiskFull(f"{kept}: make room, then {self._go_on}")

    def _say_that_it_waits(self, what: str) -> None:
        self._tell(f"{self._lack} for {what}: waiting up to {self._limit_s:.0f} s for some")


def _entry(run: str, paused_s: float, what: str) -> Incident:
    """For the list of incidents: nothing was lost, and times of this stretch are longer."""
    return Incident(
        category="disk_full", run_name=run, detail=f"paused for {paused_s:.1f} s: no room on the disk for {what}",
    )


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
