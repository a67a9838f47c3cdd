"""Run directory -> verified history. The only way in which readers come to a journal's events.

A large journal is read in stretches, by as many processes as there are cores, for the numbers of its episodes; the
records stay on disk until they are asked for. Whatever is not as it must be is left to the reading line by line.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import msgspec

from esper_ab.contracts.records import Moments
from esper_ab.errors import UsageError
from esper_ab.journal import chunk
from esper_ab.journal.chunk import Stretch
from esper_ab.journal.events import EpisodeRecorded, ExperimentStarted
from esper_ab.journal.file import JOURNAL_NAME, Reading, event_of, read, wall_time_of
from esper_ab.journal.fold import History, begin

LARGE_BYTES = 16 << 20  # from here on in stretches


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A history and where it stops."""

    history: History
    lines: int  # intact
    wall_time: str  # ISO 8601, of the last event
    torn_bytes: int  # of an unfinished last line, which counts as not written


def load(run_dir: Path, large_bytes: int = LARGE_BYTES) -> Loaded:
    """UsageError when there is no journal or nothing in it yet; JournalError when it is damaged before its end.

    `large_bytes`: the size from which on it is read in stretches, which gives the same.
    """
    path = run_dir / JOURNAL_NAME
    reading = read(path)
    first = next(reading, None)
    if first is None:
        raise UsageError(f"{path} holds no event yet; try again when the experiment has started")
    if not isinstance(first, ExperimentStarted):
        raise UsageError(f"{path} does not begin with experiment_started: no journal of this tool")
    if path.stat().st_size >= large_bytes:
        found = _in_stretches(path, first, reading)
        if found is not None:
            return found
    history = begin(first)
    for event in reading:
        history.add(event)
    return Loaded(history=history, lines=reading.lines, wall_time=reading.wall_time, torn_bytes=reading.torn_bytes)


def _in_stretches(path: Path, first: ExperimentStarted, after: Reading) -> Loaded | None:
    """What follows on the first line, which is all that `after` has read. None when anything in it is doubtful."""
    history = begin(first)
    lines, crc, wall_time, torn = after.lines, after.last_crc, after.wall_time, 0
    for part in _read_all(path, chunk.stretches(path, after.intact_bytes)):
        torn = part.torn_bytes
        if not part.lines and not part.doubtful:
            continue
        if part.doubtful or part.first != (lines, crc) or not _add(history, path, part):
            return None
        lines, crc, wall_time = lines + part.lines, part.last_crc, wall_time_of(part.last_line)
    return Loaded(history=history, lines=lines, wall_time=wall_time, torn_bytes=torn)


def _add(history: History, path: Path, part: Stretch) -> bool:
    """False when there is more in it than numbers can say."""
    for data in part.others:
        event = event_of(data)
        if event is None:
            return False
        if isinstance(event, EpisodeRecorded):  # there to be understood as a whole; its numbers come below
            history.ended = None
        else:
            history.add(event)
    for name, found in part.runs.items():
        run = history.runs.get(name)
        if run is None or (len(run.columns) and found.columns.episodes[0] <= run.columns.episodes[-1]):
            return False
        run.columns.extend(found.columns)
        run.episodes.leave_in(path, found.columns.episodes, found.offsets)
        run.checkpoints.extend(found.checkpoints)
        if found.observations:
            run.observations = msgspec.json.decode(found.observations, type=Moments)
    for name, point in part.released.items():
        if name not in history.runs:
            return False
        history.runs[name].released = max(history.runs[name].released, point)
    if part.ends_in_numbers:
        history.ended = None
    return True


def _read_all(path: Path, places: list[tuple[int, int]]) -> Iterator[Stretch]:
    """In the order of the file."""
    processes = min(len(places), len(os.sched_getaffinity(0)))
    if processes < 2:
        yield from (chunk.read_stretch(str(path), start, end) for start, end in places)
        return
    idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def ask(place: tuple[int, int]) -> Stretch:
        process = idle.get()
        assert process.stdin is not None, "it was opened with pipes"
        assert process.stdout is not None, "it was opened with pipes"
        try:
            process.stdin.write(msgspec.json.encode((str(path), *place)) + b"\n")
            process.stdin.flush()
            found: Stretch = pickle.load(process.stdout)
        finally:
            idle.put(process)
        return found

    with _readers(processes) as started, ThreadPoolExecutor(processes) as threads:
        for process in started:
            idle.put(process)
        yield from threads.map(ask, places)


@contextmanager
def _readers(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Processes that read stretches; by a command, because a main module of the user's is not to be run again."""
    command = [sys.executable, "-m", "esper_ab.journal.reader"]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    try:
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate()
