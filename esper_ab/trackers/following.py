"""Follows one journal for one tracker, event by event: the journal is the queue, so nothing waits in memory.

Only verified lines are passed on. The writer of the journal is not involved.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from esper_ab.contracts.errors import EsperError
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.journal.reading import Reading
from esper_ab.journal.tail import follow
from esper_ab.trackers.fold import Fold
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.tracker import Tracker

_POLL_S = 0.5
_FIRST_LINE_S = 30.0  # between the experiment directory and the first line of its journal


def tell(
    experiment_dir: Path,
    tracking: Tracking,
    make: Callable[[str, str], Tracker],
    on_move: Callable[[int], None],
    *,
    live: bool,
) -> None:
    """Pass on all of the journal of `experiment_dir` to a tracker. `live`: continue until no process holds the folder.

    `make` gets the experiment's name and the UTC date of its start, YYYYMMDD. `on_move` gets the number of lines passed
    on so far, after every event. Raises JournalError at a damaged line, and any exception that the tracker raises.
    """
    journal_reading, first_event = _begin(experiment_dir, patience_s=_FIRST_LINE_S if live else 0.0)
    begin_time = journal_reading.wall_time
    tracker = make(first_event.plan.experiment.name, f"{datetime.fromisoformat(begin_time):%Y%m%d}")
    fold = Fold(first_event, begin_time, tracking, tracker)
    while True:
        held = holder(experiment_dir) is not None  # before reading, so that no last event is missed
        for event in journal_reading:
            fold.add(event, journal_reading.wall_time)
            on_move(journal_reading.lines)
        if not (live and held):
            break
        time.sleep(_POLL_S)
    fold.finish()
    on_move(journal_reading.lines)


def _begin(experiment_dir: Path, patience_s: float) -> tuple[Reading, ExperimentStarted]:
    """Open the journal and read its first line, waiting up to `patience_s` seconds for it."""
    deadline = time.monotonic() + patience_s
    while True:
        if (experiment_dir / JOURNAL_NAME).is_file():
            journal_reading = follow(experiment_dir / JOURNAL_NAME)
            first_event = next(journal_reading, None)
            if isinstance(first_event, ExperimentStarted):
                return journal_reading, first_event
        if time.monotonic() >= deadline:
            raise EsperError(f"{experiment_dir / JOURNAL_NAME} does not begin with experiment_started")
        time.sleep(_POLL_S)
