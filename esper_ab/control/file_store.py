"""Writes the files that workers send, and reads those that they fetch, in threads: a sync takes tens of milliseconds.

What belongs to one path is done by one thread, in the order in which it was asked for. Results are fetched when
`descriptor` is readable.
"""

from __future__ import annotations

import errno
import hashlib
import os
import threading
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from esper_ab.contracts.below import folder_below, open_below, remove_leftovers, sync_folder, temporary_beside
from esper_ab.contracts.checkpoint_files import remove_older
from esper_ab.contracts.errors import NO_ROOM
from esper_ab.contracts.messages import PIECE_BYTES, Fetch, Fetched
from esper_ab.control.rules.transfers import (
    AnnouncedFile,
    DropFile,
    Filed,
    PieceWritten,
    Read,
    ReadPiece,
    Result,
    TakePiece,
)

_THREADS = 4
_WHY_CHARS = 150

Job = TakePiece | DropFile | ReadPiece


class FileStore:
    """The only writer of what travels over the link. One thread owns it; `close` waits for its threads."""

    def __init__(self, experiment_dir: Path) -> None:
        self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._results: SimpleQueue[Result] = SimpleQueue()
        self._jobs: list[SimpleQueue[Job | None]] = [SimpleQueue() for _ in range(_THREADS)]
        self._experiment_dir = experiment_dir
        self._threads: list[threading.Thread] = []

    def do(self, job: Job) -> None:
        """Have it done; returns at once."""
        if not self._threads:  # where files are shared there is nothing to do, ever
            self._begin()
        path = job.asked.file if isinstance(job, ReadPiece) else job.announced.path
        self._jobs[zlib.crc32(path.encode()) % _THREADS].put(job)

    def results(self) -> list[Result]:
        """What was done since the last time."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.descriptor)
        found = []
        while not self._results.empty():
            found.append(self._results.get())
        return found

    def _begin(self) -> None:
        for jobs in self._jobs:
            desk = _Desk(self._experiment_dir, self._tell)
            self._threads.append(threading.Thread(target=desk.work, args=(jobs,), name="files", daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        """Finish what was asked for, discard incomplete files and end the threads."""
        for jobs in self._jobs:
            jobs.put(None)
        for thread in self._threads:
            thread.join()
        os.close(self.descriptor)

    def _tell(self, result: Result) -> None:
        self._results.put(result)
        os.eventfd_write(self.descriptor, 1)


class NewFile:
    """A file that comes in pieces, and gets its name when it is whole. One writer per file at a time."""

    def __init__(self, root: Path, name: str) -> None:
        """What a killed writer of this file left behind is removed."""
        self._path = folder_below(root, Path(name).parent) / Path(name).name
        remove_leftovers(self._path)
        self._temporary = temporary_beside(self._path)
        self._descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def keep(self) -> None:
        """It is whole: file, name and folder are on the disk afterwards."""
        os.fsync(self._descriptor)
        Path(self._temporary).replace(self._path)
        sync_folder(self._path.parent)

    def discard(self) -> None:
        """Nothing of it is left, unless it was kept."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            with suppress(OSError):
                Path(self._temporary).unlink()


class _Coming:
    """A file that is not complete."""

    def __init__(self, root: Path, announced: AnnouncedFile) -> None:
        self.file = NewFile(root, announced.path) if announced.position is None else None
        self.log = b""
        self.size_bytes = 0
        self.sha = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.size_bytes += len(data)
        self.sha.update(data)
        if self.file is None:
            self.log += data
        else:
            self.file.write(data)

    def discard(self) -> None:
        if self.file is not None:
            self.file.discard()


class _Desk:
    """The work of one thread: files that are coming in, which are closed, and how far each log is."""

    def __init__(self, root: Path, tell: Callable[[Result], None]) -> None:
        self._root, self._tell = root, tell
        self._coming: dict[tuple[str, int], _Coming] = {}
        self._closed: dict[str, int] = {}  # worker -> number of its last file of which no piece is wanted
        self._logged: dict[tuple[str, str], int] = {}  # worker and path -> bytes of its log that are there

    def work(self, jobs: SimpleQueue[Job | None]) -> None:
        while (job := jobs.get()) is not None:
            match job:
                case TakePiece(announced, data):
                    self._take(announced, data)
                    self._tell(PieceWritten(worker=announced.worker, number=announced.number, length=len(data)))
                case DropFile(announced):
                    self._close(announced)
                case ReadPiece(worker, asked):
                    self._tell(Read(worker=worker, piece=self._read(asked)))
        for coming in self._coming.values():
            coming.discard()

    def _take(self, announced: AnnouncedFile, data: bytes) -> None:
        if announced.number <= self._closed.get(announced.worker, 0):
            return
        key = (announced.worker, announced.number)
        try:
            if key not in self._coming:
                self._coming[key] = _Coming(self._root, announced)
            coming = self._coming[key]
            coming.write(data)
            if coming.size_bytes < announced.size_bytes:
                return
            if coming.sha.hexdigest() != announced.sha256:
                self._give_up(announced, "failed", "came with other bytes than were announced")
                return
            self._keep(announced, coming)
        except OSError as error:
            if error.errno in NO_ROOM:
                self._give_up(announced, "no room")
            else:
                self._give_up(announced, "failed", f"cannot be stored: {error.strerror}"[:_WHY_CHARS])

    def _keep(self, announced: AnnouncedFile, coming: _Coming) -> None:
        if coming.file is None:
            self._append(announced, coming.log)
        else:
            coming.file.keep()
            if announced.checkpoint:
                remove_older(self._root, announced.path)
        self._close(announced)
        self._tell(Filed(announced=announced, outcome="stored"))

    def _append(self, announced: AnnouncedFile, data: bytes) -> None:
        """Append `data` to the log unless it is there: a worker that was not told so sends it again."""
        assert announced.position is not None, "it is a log"
        key = (announced.worker, announced.path)
        if announced.position < self._logged.get(key, 0):
            return
        log = open_below(self._root, announced.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            before = os.fstat(log).st_size
            if os.write(log, data) < len(data):  # a full disk shortens a write without an error
                os.ftruncate(log, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(log)
        self._logged[key] = announced.position + len(data)

    def _give_up(self, announced: AnnouncedFile, outcome: str, why: str = "") -> None:
        self._close(announced)
        self._tell(Filed(announced=announced, outcome=outcome, why=why))  # type: ignore[arg-type]  # one of the three

    def _close(self, announced: AnnouncedFile) -> None:
        self._closed[announced.worker] = max(announced.number, self._closed.get(announced.worker, 0))
        coming = self._coming.pop((announced.worker, announced.number), None)
        if coming is not None:
            coming.discard()

    def _read(self, asked: Fetch) -> Fetched:
        try:
            data = self._bytes(asked)
        except OSError as error:
            lack = (error.strerror or "it cannot be read")[:_WHY_CHARS]
            return Fetched(number=asked.number, offset=asked.offset, data=b"", lack=lack)
        return Fetched(number=asked.number, offset=asked.offset, data=data)

    def _bytes(self, asked: Fetch) -> bytes:
        folder = self._root / asked.file
        if folder.is_dir():
            files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".pyc")
            listed = "\n".join(path.relative_to(folder).as_posix() for path in files).encode()
            return listed[asked.offset : asked.offset + PIECE_BYTES]
        descriptor = open_below(self._root, asked.file, os.O_RDONLY)
        try:
            return os.pread(descriptor, PIECE_BYTES, asked.offset)
        finally:
            os.close(descriptor)
