"""Parallel reading of a journal's stretches, each by a process of its own.

The processes are started by their own command and not by multiprocessing, which would run the main module of a user's
script again in each. They only save time: whatever they cannot do, for any reason, this process does itself.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from esper_ab.contracts.files import open_to_read
from esper_ab.contracts.own_packages import child_command
from esper_ab.contracts.process_start import usable_cores
from esper_ab.contracts.records import Checkpoint, Moments
from esper_ab.journal.columns import Columns
from esper_ab.journal.events import (
    AnyEvent,
    EpisodeRecorded,
    Line,
    MilestoneReleased,
    line_of,
    lost_newline,
    wrong_tail,
)

# --- chunk -----------------------------------------------------------------------------------------------------------
# Fast reading of one stretch of a journal: checks every line and its chaining, keeps episodes as columns only.
#
# Records stay in the file until one is requested.


CHECKPOINTS_KEPT = 3  # newest ones per run and stretch; no reader needs more


@dataclass(kw_only=True)
class RunPart:
    """The episodes of one run within a stretch."""

    columns: Columns
    offsets: array[int] = field(default_factory=lambda: array("q"))  # bytes from the start of the file, by episode
    checkpoints: list[Checkpoint] = field(default_factory=list)
    observations: Moments | None = None  # newest reported; only with a shared normaliser


@dataclass(kw_only=True)
class Stretch:
    """Contents of a part of a journal between two line ends, up to the first damage."""

    start: int  # bytes from the start of the file
    measures: tuple[str, ...]  # that the plan declares
    first: tuple[int, str] | None = None  # n and prev of its first line
    lines: int = 0  # intact ones
    last_crc: str = ""
    runs: dict[str, RunPart] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)  # by run: the last milestone
    others: list[AnyEvent] = field(default_factory=list)  # neither episodes nor plain releases
    ends_in_numbers: bool = False  # its last line is not in `others`
    stamp: datetime | None = None  # of its last line
    torn_bytes: int = 0
    doubtful: bool = False  # something is wrong; reading line by line finds what


def stretches(path: Path, start: int, chunk_bytes: int) -> list[tuple[int, int]]:
    """Split the file from `start` on into (from, to) in bytes, each ending at a line end; the last one may be torn."""
    found = []
    with open_to_read(path) as file:
        size = file.seek(0, 2)
        while start < size:
            file.seek(min(start + chunk_bytes, size))
            file.readline()
            end = file.tell()
            found.append((start, end))
            start = end
    return found


def read_stretch(path: str, start: int, end: int, measures: tuple[str, ...]) -> Stretch:
    """Read the bytes from `start` to `end` of a journal whose plan declares `measures`.

    Damage is reported in the result, never raised.
    """
    found = Stretch(start=start, measures=measures)
    with open_to_read(Path(path), 1 << 20) as file:
        file.seek(start)
        at = start
        for data in file:
            if at >= end:
                break
            line = None if wrong_tail(data) else line_of(data)
            if line is None or not _add(found, line, at):
                found.torn_bytes = 0 if data.endswith(b"\n") or lost_newline(data) else len(data)
                found.doubtful = not found.torn_bytes
                break
            at += len(data)
    return found


def _add(found: Stretch, line: Line, at: int) -> bool:
    """Add a line; False when it does not follow the previous one in number, chaining or episode."""
    if found.first is None:
        found.first = line.n, line.prev
    elif line.prev != found.last_crc or line.n != found.first[0] + found.lines:
        return False
    event = line.event
    found.ends_in_numbers = True
    if isinstance(event, EpisodeRecorded):
        if not _add_episode(found, event, at):
            return False
    elif isinstance(event, MilestoneReleased) and not isinstance(event.observations, Moments):
        for name in event.runs:
            found.released[name] = max(found.released.get(name, -1), event.milestone)
    else:
        found.ends_in_numbers = False
        found.others.append(event)
    found.lines += 1
    found.last_crc, found.stamp = line.crc, line.t
    return True


def _add_episode(found: Stretch, event: EpisodeRecorded, at: int) -> bool:
    """Add an episode; False when it does not follow the run's previous one, or has other measures than the plan."""
    record = event.record
    part = found.runs.get(record.run.name)
    if part is None:
        part = found.runs[record.run.name] = RunPart(columns=Columns(found.measures))
    elif record.episode <= part.columns.newest:
        return False
    if not part.columns.fits(record):
        return False
    part.columns.add(record)
    part.offsets.append(at)
    if event.checkpoint is not None:
        part.checkpoints.append(event.checkpoint)
        del part.checkpoints[:-CHECKPOINTS_KEPT]
    if isinstance(event.observations, Moments):
        part.observations = event.observations
    return True


_LEAST_BYTES = 16 << 20  # of a stretch: starting a process takes a third of a second
_MOST_PROCESSES = 8  # more would wait for this one, and each takes a stretch's memory


def read_all(path: Path, start: int, chunk_bytes: int, measures: tuple[str, ...]) -> Iterator[Stretch]:
    """Read the journal from byte `start` on and yield its stretches in order; the plan declares `measures`.

    `chunk_bytes`: length of a stretch; 0: one for each process.
    """
    cores = min(usable_cores(), _MOST_PROCESSES)
    chunk_bytes = chunk_bytes or max(_LEAST_BYTES, -(-path.stat().st_size // cores))
    places = stretches(path, start, chunk_bytes)
    if min(len(places), cores) < 2:
        yield from (read_stretch(str(path), *place, measures) for place in places)
        return

    def read(place: tuple[int, int]) -> Stretch:
        return _by_process(path, place, measures) or read_stretch(str(path), *place, measures)

    with ThreadPoolExecutor(cores) as threads:  # each waits for the process that it started
        yield from threads.map(read, places)


def _by_process(path: Path, place: tuple[int, int], measures: tuple[str, ...]) -> Stretch | None:
    """Have a process read one stretch; None when it cannot be started or its answer is invalid."""
    asked = json.dumps((os.fsdecode(path), *place, measures))
    try:
        told = subprocess.run(
            child_command("esper_ab.journal.fast.reader", asked), stdin=subprocess.DEVNULL, capture_output=True,
            check=True,
        )  # fmt: skip
        found = pickle.loads(told.stdout)
    except Exception:  # noqa: BLE001  unpickling truncated or foreign bytes may raise anything
        return None
    return found if isinstance(found, Stretch) and found.start == place[0] else None
