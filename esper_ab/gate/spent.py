"""The time that a gate has taken so far, from its journal."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from esper_ab.journal.events import ExperimentContinued
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read


def spent_seconds(experiment_dir: Path) -> float:
    """Return the seconds from the first event of each sitting to its last; pauses between them do not count."""
    spent_s = 0.0
    begin: datetime | None = None
    last: datetime | None = None
    reading = read(experiment_dir / JOURNAL_NAME)
    for event in reading:
        stamp = datetime.fromisoformat(reading.wall_time)
        if begin is None or isinstance(event, ExperimentContinued):
            spent_s += 0.0 if begin is None or last is None else (last - begin).total_seconds()
            begin = stamp
        last = stamp
    if begin is None or last is None:
        return 0.0
    return max(0.0, spent_s + (last - begin).total_seconds())


def run_seconds(history: History) -> float:
    """Return the mean duration of the runs that were trained here and have ended; 0.0 if there are none."""
    own_runs = [run for run in history.runs.values() if run.reused is None]
    durations = [_duration(run) for run in own_runs if run.evaluation is not None]
    return sum(durations) / len(durations) if durations else 0.0


def _duration(run: RunHistory) -> float:
    assert run.evaluation is not None
    return sum(run.columns.of("total_s")) + run.evaluation.timing.total_s
