"""Experiment directory -> verified history. The only way in which readers access a journal's events.

A history holds the numbers of its episodes; their records stay in the file until one is requested.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.journal.events import EpisodeRecorded, ExperimentStarted
from esper_ab.journal.fold import History, Inconsistent, begin
from esper_ab.journal.lock import JOURNAL_NAME, holder
from esper_ab.journal.reading import Reading, read


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A history and the state of the journal at its end."""

    history: History
    lines: int  # intact
    wall_time: str  # ISO 8601, of the last event
    torn_bytes: int  # of an unfinished last line, which is ignored
    held: bool  # whether a process holds the directory; checked before reading, so that no last event is missed


def load(experiment_dir: Path) -> Loaded:
    """Load an experiment's history.

    Raises UsageError if there is no journal or no event, and JournalError for damage before the journal's end.
    """
    held = holder(experiment_dir) is not None
    path = experiment_dir / JOURNAL_NAME
    journal_reading = read(path)
    first_event = next(journal_reading, None)
    if first_event is None and journal_reading.torn_bytes and not held:
        raise JournalError(f"{path}, line 1: it is cut off, so nothing was recorded; launch the experiment again")
    if first_event is None:
        raise UsageError(f"{path} is still empty; try again when the experiment has started")
    if not isinstance(first_event, ExperimentStarted):
        raise UsageError(f"{path} does not begin with experiment_started: not a journal of esper_ab")
    with located(journal_reading):
        history = begin(first_event, keeps_records=False)
        offset = journal_reading.intact_bytes
        for event in journal_reading:
            history.add(event)
            if isinstance(event, EpisodeRecorded):
                history.run(event.record.run.name).episodes.leave_in(path, event.record.episode, offset)
            offset = journal_reading.intact_bytes
    return Loaded(
        history=history,
        lines=journal_reading.lines,
        wall_time=journal_reading.wall_time,
        torn_bytes=journal_reading.torn_bytes,
        held=held,
    )


@contextmanager
def located(journal_reading: Reading) -> Iterator[None]:
    """Add the file and the line to the error for an event that does not fit."""
    try:
        yield
    except Inconsistent as error:
        raise journal_reading.misfit(str(error)) from None
