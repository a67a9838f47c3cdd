"""A full disk is waited for: what could not be written is tried again, on the coordinator's one thread, until it can.

Meanwhile everybody else comes to rest by himself: a worker that has reported waits for a release. Signals are looked
for between two tries, so Ctrl-C ends the wait; nothing is in progress then that could be finished in order.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from esper_ab.contracts.errors import DiskFull, Interrupted, JournalError
from esper_ab.contracts.messages import Progress
from esper_ab.contracts.shell_command import shell_command
from esper_ab.control.rules.liveness import Limits
from esper_ab.control.signals import CaughtSignals
from esper_ab.journal.events import Incident

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
        self.given_up = False  # from then on nothing is waited for any more

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
        began = time.monotonic()
        waiting = False
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
                self._go_on = f"`{shell_command('resume', self._experiment_dir)}`"
                break
            if not waiting:
                waiting = True
                self._say_that_it_waits("the journal")
            self._pause(began)
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
    detail = f"paused for {paused_s:.1f} s: no room on the disk for {what}"
    return Incident(category="disk_full", run_name=run, detail=detail)
