"""The time that a gate has taken so far: its sittings, from the begin of the command to its answer, without pauses.

The journal has the times of events only. What comes before the first one, rehearsal and start, and what comes after
the last one, the report, is known from a file with the begin and the end of each sitting.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.control.observers import Observed
from esper_ab.journal.events import ExperimentContinued, ExperimentStarted
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.lock import JOURNAL_NAME
from esper_ab.journal.reading import read

SITTINGS = "sittings.json"  # in the directory of a gate


class Sitting(msgspec.Struct, frozen=True, kw_only=True):
    """One command that trained runs of a gate."""

    began: datetime
    ended: datetime | None = None  # with its answer; None: it is running, or was interrupted


_decode = msgspec.json.Decoder(list[Sitting]).decode


@dataclass(frozen=True, kw_only=True)
class SittingKept:
    """An observer that keeps when the command began, as soon as the journal has its first event."""

    directory: Path
    began: datetime

    def observe(self, event: Observed) -> None:
        """Keep the begin at the first event of a sitting."""
        if isinstance(event, ExperimentStarted | ExperimentContinued):
            _write(self.directory, [*_sittings(self.directory), Sitting(began=self.began)])


def keep_end(directory: Path, begin_time: datetime) -> None:
    """Keep that the sitting which began then has ended now."""
    now = datetime.now(UTC)
    sittings = [sitting for sitting in _sittings(directory) if sitting.began != begin_time]
    _write(directory, [*sittings, Sitting(began=begin_time, ended=now)])


def spent_seconds(experiment_dir: Path) -> float:
    """Return the seconds of all sittings; pauses between them do not count.

    A sitting without an entry in the file, as of `resume`, lasts from its first event to its last.
    """
    sittings = _sittings(experiment_dir)
    spent_s = 0.0
    end_before = datetime.min.replace(tzinfo=UTC)
    for first_time, last_time in _journalled(experiment_dir):
        begin, end = first_time, last_time
        for sitting in sittings:
            if end_before < sitting.began <= first_time:
                begin = sitting.began
                end = last_time if sitting.ended is None else max(last_time, sitting.ended)
        spent_s += max(0.0, (end - begin).total_seconds())
        end_before = end
    return spent_s


def _journalled(experiment_dir: Path) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times of the first event and the last one of each sitting."""
    reading = read(experiment_dir / JOURNAL_NAME)
    first_time: datetime | None = None
    last_time: datetime | None = None
    for event in reading:
        stamp = datetime.fromisoformat(reading.wall_time)
        if isinstance(event, ExperimentContinued) and first_time is not None and last_time is not None:
            yield first_time, last_time
            first_time = None
        first_time = first_time or stamp
        last_time = stamp
    if first_time is not None and last_time is not None:
        yield first_time, last_time


def _sittings(directory: Path) -> list[Sitting]:
    """Return the sittings in the file; none if it is not there or damaged."""
    try:
        return _decode(read_regular(directory / SITTINGS))
    except (OSError, *UNREADABLE):
        return []


def _write(directory: Path, sittings: list[Sitting]) -> None:
    write_below(directory, SITTINGS, msgspec.json.encode(sittings) + b"\n")


def run_seconds(history: History) -> float:
    """Return the mean duration of the runs that were trained here and have ended; 0.0 if there are none."""
    own_runs = [run for run in history.runs.values() if run.reused is None]
    durations = [_duration(run) for run in own_runs if run.evaluation is not None]
    return sum(durations) / len(durations) if durations else 0.0


def _duration(run: RunHistory) -> float:
    assert run.evaluation is not None
    return sum(run.columns.of("total_s")) + run.evaluation.timing.total_s
