"""When the disk is full, retry the write on the coordinator's only thread until there is room.

Workers idle at the barrier meanwhile. Signals are polled between two tries. Ctrl-C ends the wait at once, because
nothing else is in progress that could be finished first.
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
from esper_ab.control.rules.limits import Limits
from esper_ab.control.signals import CaughtSignals
from esper_ab.journal.events import (
    Incident,
)

PHASE = "disk full"  # phase that a worker reports while it has no disk space for a checkpoint
_TRY_S = 1.0


class DiskSpaceWait:
    """Waits while the experiment's disk is full, and tells the user when the wait begins and when it ends."""

    def __init__(self, experiment_dir: Path, warn: Callable[[str], None]) -> None:
        self._experiment_dir = experiment_dir
        self._tell = warn
        self._lack = f"no space on the disk of {experiment_dir}"
        self._go_on = "run the command again"  # until this process has recorded something
        self._limit_s = Limits().disk_full_s
        self._signals: CaughtSignals | None = None
        self._without: dict[str, float] = {}  # run whose worker waits for disk space -> since when (monotonic, s)
        self.given_up = False  # if True, a full disk is an error at once

    @contextmanager
    def heeding(self, signals: CaughtSignals, limit_s: float) -> Iterator[None]:
        """Inside this context, poll signals during a wait. From now on, a wait lasts at most `limit_s`."""
        self._signals = signals
        self._limit_s = limit_s
        try:
            yield
        finally:
            self._signals = None

    def retry_until_room(self, write: Callable[[], None]) -> Incident | None:
        """Retry `write` until the disk has room; return an incident if there was a wait.

        Raises DiskFull after the limit, and Interrupted on Ctrl-C or SIGTERM. Raises JournalError at once, because
        waiting cannot repair the journal.
        """
        begin_s = time.monotonic()
        has_waited = False
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
            if not has_waited:
                self._report_wait("the journal")
            has_waited = True
            self._pause(begin_s)
        self._go_on = f"`{shell_command('resume', self._experiment_dir)}`"
        if not has_waited:
            return None
        paused_s = time.monotonic() - begin_s
        self._tell(f"the disk has space again after {paused_s:.0f} s: continuing")
        return _entry("", paused_s, "the journal")

    def note(self, progress: Progress) -> Incident | None:
        """Track a worker that waits for room for a checkpoint; return an incident when the worker continues.

        Raises DiskFull when the wait exceeds the limit. The worker itself would retry until it is killed.
        """
        run = progress.run.name
        if progress.phase != PHASE:
            return self.stop_tracking(run)
        if not self._without:
            self._report_wait(f"a checkpoint of {run}")
        begin_s = self._without.setdefault(run, time.monotonic())
        if time.monotonic() - begin_s >= self._limit_s:
            self._give_up()
        return None

    def stop_tracking(self, run: str) -> Incident | None:
        """Stop tracking a run whose worker has continued; return an incident if the worker had waited."""
        begin_s = self._without.pop(run, None)
        if begin_s is None:
            return None
        if not self._without:
            self._tell("the disk has space for checkpoints again: continuing")
        return _entry(run, time.monotonic() - begin_s, "a checkpoint")

    def _pause(self, begin_s: float) -> None:
        """Sleep for one second, or less if a signal arrives or the limit is near."""
        seconds_left = begin_s + self._limit_s - time.monotonic()
        if seconds_left <= 0:
            self._give_up()
        poll = select.poll()  # select() cannot handle descriptors above 1023
        if self._signals:
            poll.register(self._signals.descriptor, select.POLLIN)
        poll.poll(1000 * min(seconds_left, _TRY_S))
        caught_signals = self._signals.read() if self._signals else ()
        if caught_signals:
            self.given_up = True
            raise Interrupted(
                f"stopped by {caught_signals[0].name} while there was {self._lack}; all records so far are kept"
            )

    def _give_up(self) -> None:
        self.given_up = True
        kept_words = f"{self._lack} for {self._limit_s:.0f} s; all records so far are kept"
        raise DiskFull(f"{kept_words}: free some space, then {self._go_on}")

    def _report_wait(self, purpose: str) -> None:
        self._tell(f"{self._lack} for {purpose}: waiting up to {self._limit_s:.0f} s")


def _entry(run: str, paused_s: float, purpose: str) -> Incident:
    """Return an incident for a pause: nothing was lost, but durations measured during the pause are longer."""
    return Incident(
        category="disk_full",
        run_name=run,
        detail=f"paused for {paused_s:.1f} s: no space on the disk for {purpose}",
    )
