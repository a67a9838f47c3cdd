"""A stretch of a journal, read for its numbers: every line's CRC and place in the chain, of episodes the columns only.

Every line is decoded into the type of its event, so an unknown field is an error wherever it stands, as it is for
`file.Reading`. The one exception are the seed events of an episode, most of its bytes: they are passed over, but for
the first episode of each stretch, and looked at by whoever asks for the record. A process writes all its lines in one
way, so those of another version are noticed.
"""

from __future__ import annotations

import zlib
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from esper_ab.contracts.records import Checkpoint, Moments
from esper_ab.journal.columns import Columns
from esper_ab.journal.events import EpisodeRecorded, PointReleased
from esper_ab.journal.file import line_of

CHUNK_BYTES = 32 << 20
CHECKPOINTS_KEPT = 3  # of each run and stretch, the newest: more are never asked for
_AT_ONCE = 64  # records of a run that come into its columns together
_TAIL = b',"crc":"%08x"}\n'
_TAIL_BYTES = len(_TAIL % 0)
_EPISODE = b'"event":{"kind":"episode"'
_KIND_WITHIN = 120  # bytes from the start of a line, which `n`, `prev` and `t` take less of
_NO_EVENTS, _LAST_BYTES = b'"seed_events":[],"timing":', 512
_EVENTS, _EVENTS_END = b',"seed_events":[', b'],"timing":'  # as no text can hold them: its quotes are escaped


@dataclass(kw_only=True)
class RunPart:
    """One run's episodes in a stretch."""

    columns: Columns = field(default_factory=Columns)
    newest: int = -1  # episode
    waiting: list[EpisodeRecord] = field(default_factory=list)  # for the columns, in which many come at once
    offsets: array[int] = field(default_factory=lambda: array("q"))  # bytes from the start of the file, by episode
    checkpoints: list[Checkpoint] = field(default_factory=list)
    observations: Moments | None = None  # the newest reported, where they are shared

    def add(self, record: EpisodeRecord) -> None:
        """Before it is in the columns `settle` has to be called."""
        self.newest = record.episode
        self.waiting.append(record)
        if len(self.waiting) == _AT_ONCE:
            self.settle()

    def settle(self) -> None:
        """What waits for the columns comes there."""
        self.columns.add_all(self.waiting)
        self.waiting.clear()


@dataclass(kw_only=True)
class Stretch:
    """What stands between two line ends of a journal, as far as it is intact."""

    start: int  # bytes from the start of the file
    first: tuple[int, str] | None = None  # n and prev of its first line
    lines: int = 0  # intact ones
    last_crc: str = ""
    runs: dict[str, RunPart] = field(default_factory=dict)
    released: dict[str, int] = field(default_factory=dict)  # by run: the last point
    others: list[bytes] = field(default_factory=list)  # lines that are neither
    ends_in_numbers: bool = False  # its last line is not among the others
    wall_time: str = ""  # of its last line, ISO 8601
    torn_bytes: int = 0
    doubtful: bool = False  # something is not as it must be: who reads line by line says what


def stretches(path: Path, start: int, chunk_bytes: int = CHUNK_BYTES) -> list[tuple[int, int]]:
    """(from, to) in bytes, each ending at the end of a line; the last one may be torn."""
    found = []
    with path.open("rb") as file:
        size = file.seek(0, 2)
        while start < size:
            file.seek(min(start + chunk_bytes, size))
            file.readline()
            end = file.tell()
            found.append((start, end))
            start = end
    return found


def read_stretch(path: str, start: int, end: int) -> Stretch:
    """Never raises for what is in the file."""
    found = Stretch(start=start)
    with open(path, "rb", buffering=1 << 20) as file:  # noqa: PTH123  as in a process of its own
        file.seek(start)
        at = start
        for data in file:
            if at >= end or not _take(found, data, at):
                break
            at += len(data)
    for part in found.runs.values():
        part.settle()
    return found


def _take(found: Stretch, data: bytes, at: int) -> bool:
    """One line; False when it is torn or doubtful."""
    if not data.endswith(b"\n"):
        found.torn_bytes = len(data)
        return False
    tail = _TAIL % zlib.crc32(memoryview(data)[:-_TAIL_BYTES])
    if not data.endswith(tail) or not _add(found, data, at):
        found.doubtful = True
        return False
    found.lines += 1
    return True


def _add(found: Stretch, data: bytes, at: int) -> bool:
    """False when the line does not follow from the one before, or cannot be read."""
    is_episode = data.find(_EPISODE, 0, _KIND_WITHIN) > 0
    line = line_of(_without_events(data) if is_episode and found.runs else data)
    if line is None:
        return False
    if found.first is None:
        found.first = line.n, line.prev
    elif (line.n, line.prev) != (found.first[0] + found.lines, found.last_crc):
        return False
    found.last_crc, found.wall_time = line.crc, line.t
    event = line.event
    found.ends_in_numbers = True
    if isinstance(event, EpisodeRecorded):
        return _add_episode(found, event, at)
    if isinstance(event, PointReleased) and not isinstance(event.observations, Moments):
        for name in event.runs:
            found.released[name] = max(found.released.get(name, -1), event.point)
    else:
        found.ends_in_numbers = False
        found.others.append(data)
    return True


def _without_events(data: bytes) -> bytes:
    """The line of an episode without its seed events, which no number here is made of."""
    if data.rfind(_NO_EVENTS, -_LAST_BYTES) > 0:
        return data
    begin = data.find(_EVENTS)
    end = data.rfind(_EVENTS_END)
    return data[: begin + len(_EVENTS)] + data[end:] if 0 < begin < end else data


def _add_episode(found: Stretch, event: EpisodeRecorded, at: int) -> bool:
    """False for an episode that does not come after the one before: nobody writes that."""
    record = event.record
    part = found.runs.get(record.run.run)
    if part is None:
        part = found.runs[record.run.run] = RunPart()
    elif record.episode <= part.newest:
        return False
    part.add(record)
    part.offsets.append(at)
    if event.checkpoint is not None:
        part.checkpoints.append(event.checkpoint)
        del part.checkpoints[:-CHECKPOINTS_KEPT]
    if isinstance(event.observations, Moments):
        part.observations = event.observations
    return True
