"""Follow the journal of an experiment that another process runs, without changing anything.

Any number of viewers can follow an experiment, on any machine that sees the experiment directory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.fold import History, begin
from esper_ab.journal.load import Loaded, located
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.journal.reading import Reading
from esper_ab.journal.tail import follow
from esper_ab.readers.status import ExperimentState, state_of

_POLL_S = 0.25


class Viewer:
    """Follows the journal of one experiment directory."""

    def __init__(self, experiment_dir: Path) -> None:
        """Read the journal so far.

        Raises UsageError if the journal is missing or empty. This and all methods that read further raise JournalError
        if the journal is damaged.
        """
        self._experiment_dir = experiment_dir
        self._reading: Reading = follow(experiment_dir / JOURNAL_NAME)
        first_event = next(self._reading, None)
        if not isinstance(first_event, ExperimentStarted):
            path = experiment_dir / JOURNAL_NAME
            raise UsageError(f"{path} does not begin with experiment_started; try again, or see tidy --check")
        with located(self._reading):
            self.history: History = begin(first_event, keeps_records=False)
        self.catch_up()

    @property
    def state(self) -> ExperimentState:
        return state_of(self.history, held=self.held)

    def loaded(self) -> Loaded:
        """Return the part of the journal that has been read so far."""
        journal_reading = self._reading
        return Loaded(
            history=self.history,
            lines=journal_reading.lines,
            wall_time=journal_reading.wall_time,
            torn_bytes=journal_reading.torn_bytes,
            held=self.held,
        )

    def batches(self, poll_s: float = _POLL_S) -> Iterator[Reading]:
        """Yield batches of new events until the experiment or its process ends. The caller adds them to `history`."""
        while self.state == "running":
            time.sleep(poll_s)
            self.held = holder(self._experiment_dir) is not None
            yield self._reading

    def catch_up(self) -> None:
        """Add all new events to `history` without yielding them."""
        self.held = holder(self._experiment_dir) is not None  # before reading, so that no last event is missed
        with located(self._reading):
            for event in self._reading:
                self.history.add(event)
