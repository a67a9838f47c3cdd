"""Run directory -> verified history. The only way in which readers come to a journal's events."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from esper_ab.errors import UsageError
from esper_ab.journal.events import ExperimentStarted
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import History, begin


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A history and where it stops."""

    history: History
    lines: int  # intact
    wall_time: str  # ISO 8601, of the last event
    torn_bytes: int  # of an unfinished last line, which counts as not written


def load(run_dir: Path) -> Loaded:
    """UsageError when there is no journal or nothing in it yet; JournalError when it is damaged before its end."""
    reading = read(run_dir / JOURNAL_NAME)
    first = next(reading, None)
    if first is None:
        raise UsageError(f"{run_dir / JOURNAL_NAME} holds no event yet; try again when the experiment has started")
    if not isinstance(first, ExperimentStarted):
        raise UsageError(f"{run_dir / JOURNAL_NAME} does not begin with experiment_started: no journal of this tool")
    history = begin(first)
    for event in reading:
        history.add(event)
    return Loaded(history=history, lines=reading.lines, wall_time=reading.wall_time, torn_bytes=reading.torn_bytes)
