"""One tracker and one journal, batch by batch: the journal is the queue, so nothing waits in memory.

Only lines that are verified are told. Who writes the journal knows nothing of this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from esper_ab.contracts.errors import EsperError
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.file import JOURNAL_NAME, Reading
from esper_ab.journal.lock import holder
from esper_ab.journal.tail import follow
from esper_ab.trackers.fold import Fold, experiment_of
from esper_ab.trackers.settings import Tracking
from esper_ab.trackers.subject import TrackedExperiment, Tracker

_BATCH = 500  # events
_POLL_S = 0.5
_FIRST_LINE_S = 30.0  # from the run directory to the first line of its journal


def tell(
    run_dir: Path, tracking: Tracking, make: Callable[[TrackedExperiment, Tracking], Tracker],
    moved: Callable[[int], None], *, live: bool,
) -> None:  # fmt: skip
    """Tell a tracker everything the journal of `run_dir` holds; `live`: until nobody carries the run out any more.

    `moved` is called with the lines told so far after every batch. Raises JournalError at a damaged line, and whatever
    the tracker raises.
    """
    reading, first = _begin(run_dir, patience_s=_FIRST_LINE_S if live else 0.0)
    began = reading.wall_time
    tracker = make(experiment_of(first, began, tracking), tracking)
    fold = Fold(first, began, tracking, tracker)
    while True:
        held = holder(run_dir) is not None  # asked before reading: who has gone by then has written everything
        while _batch(reading, fold):
            tracker.flush()
            moved(reading.lines)
        if not (live and held):
            break
        time.sleep(_POLL_S)
    fold.finish()
    moved(reading.lines)


def _batch(reading: Reading, fold: Fold) -> int:
    """Events told."""
    count = 0
    for event in islice(reading, _BATCH):
        fold.add(event, reading.wall_time)
        count += 1
    return count


def _begin(run_dir: Path, patience_s: float) -> tuple[Reading, ExperimentStarted]:
    """The first line, which may be a moment away."""
    deadline = time.monotonic() + patience_s
    while True:
        if (run_dir / JOURNAL_NAME).is_file():
            reading = follow(run_dir / JOURNAL_NAME)
            first = next(reading, None)
            if isinstance(first, ExperimentStarted):
                return reading, first
        if time.monotonic() >= deadline:
            raise EsperError(f"{run_dir / JOURNAL_NAME} does not begin with experiment_started")
        time.sleep(_POLL_S)
