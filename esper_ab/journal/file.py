"""`events.jsonl`: the journal on disk. One writer, any number of readers; knows bytes and lines, not what events mean.

One event per line, each line a JSON object, so jq and DuckDB read the file as it is:

    {"n":7,"prev":"1c291ca3","t":"2026-01-31T10:15:00.123+00:00","event":{"kind":…},"crc":"8f3a0c55"}

`crc` is the CRC-32 of the line's bytes before `,"crc"`; `prev` is the `crc` of the line before ("00000000" at first);
`n` counts lines from 0. A line is written once its newline is, so a file cut anywhere is a journal with a torn tail.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from esper_ab.errors import JournalError, UsageError
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.lock import take

JOURNAL_NAME = "events.jsonl"
_FIRST_PREV = "00000000"
_CRC_KEY = b',"crc":"'
_TAIL_BYTES = len(_CRC_KEY) + 8 + len(b'"}\n')


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    n: int
    prev: str
    t: str
    event: AnyEvent
    crc: str


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """The one writer of a run directory's journal. Events are on disk once `commit` has returned."""

    def __init__(self, run_dir: Path, wall_clock: Callable[[], datetime] = _now) -> None:
        """Lock `run_dir` and begin its journal; UsageError when another process or an earlier run has it."""
        self._path = run_dir / JOURNAL_NAME
        self._wall_clock = wall_clock
        self._n = 0
        self._prev = _FIRST_PREV
        self._size = 0
        self._lock = take(run_dir)
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            os.close(self._lock)
            raise UsageError(f"{self._path} exists: this run directory has been used; choose another name") from None
        _sync_directory(run_dir)

    @classmethod
    def reopen(cls, run_dir: Path, wall_clock: Callable[[], datetime] = _now) -> tuple[Journal, list[AnyEvent]]:
        """The journal of an earlier process, to be continued, and its events; UsageError when another process has it.

        An unfinished last line is cut off and kept beside the journal; JournalError when a line before is damaged.
        """
        journal = cls.__new__(cls)
        journal._path, journal._wall_clock = run_dir / JOURNAL_NAME, wall_clock
        reading = read(journal._path)
        journal._lock = take(run_dir)
        try:
            events = list(reading)
        except JournalError:
            os.close(journal._lock)
            raise
        journal._n, journal._prev = reading.lines, reading.last_crc
        journal._size = journal._path.stat().st_size - reading.torn_bytes
        journal._file = os.open(journal._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        if reading.torn_bytes:
            torn = os.pread(journal._file, reading.torn_bytes, journal._size)
            (run_dir / f"{JOURNAL_NAME}.torn-{reading.lines}").write_bytes(torn)
            os.ftruncate(journal._file, journal._size)
        return journal, events

    def append(self, event: AnyEvent) -> None:
        """Add one line. A write that cannot be completed is taken back and raises JournalError."""
        stamp = self._wall_clock().isoformat(timespec="milliseconds")
        body = b'{"n":%d,"prev":"%s","t":"%s","event":%s' % (
            self._n, self._prev.encode(), stamp.encode(), msgspec.json.encode(event),
        )  # fmt: skip
        crc = f"{zlib.crc32(body):08x}"
        line = body + _CRC_KEY + crc.encode() + b'"}\n'
        try:
            _write_all(self._file, line)
        except OSError as error:
            os.ftruncate(self._file, self._size)
            what = f"cannot write {self._path}: {error.strerror}"
            raise JournalError(f"{what}; its {self._n} lines are intact") from error
        self._n += 1
        self._prev = crc
        self._size += len(line)

    def commit(self) -> None:
        """Return when every appended line is on the disk: one fdatasync."""
        os.fdatasync(self._file)

    def close(self) -> None:
        """Commit and let go of the run directory."""
        self.commit()
        os.close(self._file)
        os.close(self._lock)


def _write_all(descriptor: int, data: bytes) -> None:
    """A full disk shortens a write without an error, so the count is what tells."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_directory(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(descriptor)
    os.close(descriptor)


class Reading(Iterator[AnyEvent]):
    """Verified events of a journal, read lazily and in order; raises JournalError at the first damaged line.

    What the attributes say is about the part read so far: `lines` intact ones, `wall_time` of the last event (ISO 8601,
    "" before the first), `torn_bytes` of an unfinished last line (0 until the end is reached).
    """

    def __init__(self, path: Path, source: Iterator[bytes] | None = None) -> None:
        """`source`: the file's lines, when somebody else reads them (journal/tail)."""
        self._path = path
        self._source = _lines(path) if source is None else source
        self._decoder = msgspec.json.Decoder(_Line)
        self._prev = _FIRST_PREV
        self.lines = 0
        self.wall_time = ""
        self.torn_bytes = 0

    def __next__(self) -> AnyEvent:
        data = next(self._source)
        if not data.endswith(b"\n"):
            self.torn_bytes = len(data)
            raise StopIteration
        line = self._verified(data)
        self.lines += 1
        self._prev = line.crc
        self.wall_time = line.t
        return line.event

    @property
    def last_crc(self) -> str:
        """Of the last intact line read."""
        return self._prev

    def _verified(self, data: bytes) -> _Line:
        crc = data[-11:-3].decode(errors="replace")
        if data[-_TAIL_BYTES:] != _CRC_KEY + crc.encode() + b'"}\n':
            raise self._damage("it does not end in its CRC")
        if f"{zlib.crc32(data[:-_TAIL_BYTES]):08x}" != crc:
            raise self._damage("its CRC does not match its contents")
        try:
            line = self._decoder.decode(data)
        except msgspec.MsgspecError as error:
            raise self._damage(f"intact, but no event of this version of esper_ab ({error})") from None
        if (line.n, line.prev) != (self.lines, self._prev):
            raise self._damage(f"it is line n={line.n} after {line.prev}; expected n={self.lines} after {self._prev}")
        return line

    def _damage(self, what: str) -> JournalError:
        remedy = f"the {self.lines} before it are intact: `head -n {self.lines}` keeps them"
        return JournalError(f"{self._path}, line {self.lines + 1}: {what}; {remedy}")


def read(path: Path) -> Reading:
    """Events of the journal file at `path`. UsageError when there is none; JournalError, while reading, on damage."""
    if not path.is_file():
        raise UsageError(f"no journal at {path}; a run directory holds {JOURNAL_NAME}")
    return Reading(path)


def _lines(path: Path) -> Iterator[bytes]:
    file: BinaryIO
    with path.open("rb") as file:
        yield from file
