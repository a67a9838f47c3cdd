"""Experiment directory -> verified history, and the events that are appended later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files import open_to_read
from esper_ab.journal.events import ExperimentStarted, stamp_text
from esper_ab.journal.file import JOURNAL_NAME, Reading, check_there, read
from esper_ab.journal.fold import History, Inconsistent, begin

if TYPE_CHECKING:
    from esper_ab.journal.fast.pool import Stretch

# --- load ------------------------------------------------------------------------------------------------------------
# Experiment directory -> verified history. The only way in which readers access a journal's events.
#
# A large journal is read in stretches, by as many processes as there are cores, for the numbers of its episodes;
# records stay on disk until requested. If anything is wrong, the journal is read line by line instead, which reports
# the error.


LARGE_BYTES = 16 << 20  # journals of this size and more are read in stretches


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A history and the end of the journal that it was read from."""

    history: History
    lines: int  # intact
    wall_time: str  # ISO 8601, of the last event
    torn_bytes: int  # of an unfinished last line, which is ignored


def load(experiment_dir: Path, large_bytes: int = LARGE_BYTES, chunk_bytes: int = 0) -> Loaded:
    """Load an experiment's history; UsageError without a journal or event, JournalError for damage before its end.

    `large_bytes`: size from which the journal is read in stretches, of `chunk_bytes` each (0: as many as there are
    processes), with the same result.
    """
    path = experiment_dir / JOURNAL_NAME
    reading = read(path)
    first = next(reading, None)
    if first is None:
        raise UsageError(f"{path} holds no event yet; try again when the experiment has started")
    if not isinstance(first, ExperimentStarted):
        raise UsageError(f"{path} does not begin with experiment_started: no journal of this tool")
    with located(reading):
        history = begin(first)
        if path.stat().st_size >= large_bytes:
            with suppress(Inconsistent):
                return _in_stretches(path, first, reading, chunk_bytes)
        for event in reading:
            history.add(event)
    return Loaded(history=history, lines=reading.lines, wall_time=reading.wall_time, torn_bytes=reading.torn_bytes)


@contextmanager
def located(reading: Reading) -> Iterator[None]:
    """Tell of an event that does not fit where it stands: in which file and line."""
    try:
        yield
    except Inconsistent as error:
        raise reading.misfit(str(error)) from None


def _in_stretches(path: Path, first: ExperimentStarted, after: Reading, chunk_bytes: int) -> Loaded:
    """Load the lines after the first, which `after` has read, in stretches. Inconsistent when anything is doubtful."""
    from esper_ab.journal.fast import pool  # which few journals are large enough for

    history = begin(first)
    lines, crc, wall_time, torn = after.lines, after.last_crc, after.wall_time, 0
    for part in pool.read_all(path, after.intact_bytes, chunk_bytes, history.design.measures.names):
        torn = part.torn_bytes
        if not part.lines and not part.doubtful:
            continue
        if part.doubtful or part.first != (lines, crc):
            raise Inconsistent("only reading line by line can tell what is wrong")
        _add(history, path, part)
        lines, crc = lines + part.lines, part.last_crc
        wall_time = stamp_text(part.stamp) if part.stamp else wall_time
    return Loaded(history=history, lines=lines, wall_time=wall_time, torn_bytes=torn)


def _add(history: History, path: Path, part: Stretch) -> None:
    """Add a stretch to the history; Inconsistent where it does not fit."""
    for event in part.others:
        history.add(event)
    for name, found in part.runs.items():
        run = history.run(name)
        if found.columns.episodes[0] <= run.columns.newest:
            raise Inconsistent(f"an episode of {name} is there again")
        run.columns.extend(found.columns)
        run.episodes.leave_in(path, found.columns.episodes, found.offsets)
        run.checkpoints.extend(found.checkpoints)
        if found.observations is not None:
            run.observations = found.observations
    for name, milestone in part.released.items():
        run = history.run(name)
        run.released = max(run.released, milestone)
    if part.ends_in_numbers:
        history.ended = None


# --- tail ------------------------------------------------------------------------------------------------------------
# Following a journal that is being written: the events there are, and later those appended since.


_CHUNK_BYTES = 1 << 20


class _Tail(Iterator[bytes]):
    """Iterator over whole lines. An unfinished last line is read anew each time, because its writer may replace it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # first byte not yet read as part of a whole line
        self._whole: deque[bytes] = deque()  # read and not yet returned

    def __next__(self) -> bytes:
        if not self._whole:
            self._read()
        if not self._whole:
            raise StopIteration
        return self._whole.popleft()

    def _read(self) -> None:
        with open_to_read(self._path) as file:
            file.seek(self._offset)
            data = file.read(_CHUNK_BYTES)
            while b"\n" not in data and (more := file.read(_CHUNK_BYTES)):
                data += more
        *whole, _ = data.split(b"\n")
        self._whole.extend(line + b"\n" for line in whole)
        self._offset += sum(map(len, self._whole))


def follow(path: Path) -> Reading:
    """Read a growing journal; iterating again after the end yields appended events. UsageError without a file."""
    check_there(path)
    return Reading(path, _Tail(path))
