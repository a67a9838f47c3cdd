"""`events.jsonl`: the journal on disk, with one writer and any number of readers (journal/reading.py).

Each line is one event, written as a JSON object, so that jq and DuckDB can read the file as it is:

    {"n":7,"prev":"1c291ca3","t":"2026-01-31T10:15:00.123+00:00","event":{"kind":…},"crc":"8f3a0c55"}

`crc` is the CRC-32 of the line's bytes before `,"crc"`; `prev` is the `crc` of the line before ("00000000" in the first
line); `n` counts lines from 0. A line is valid once its newline is written, so a file that is cut off anywhere is a
journal with an unfinished last line.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from esper_ab.contracts.errors import NO_ROOM, DiskFull, JournalError, UsageError
from esper_ab.contracts.files_below import sync_folder, write_all
from esper_ab.contracts.regular_file import open_regular
from esper_ab.contracts.shell_command import shell_command
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.line import (
    FIRST_PREV,
    LONGEST_LINE_BYTES,
    written,
)
from esper_ab.journal.lock import JOURNAL_NAME, Lock
from esper_ab.journal.reading import Reading, read
from esper_ab.journal.torn_tail import cut_off

_LINES_AT_ONCE = 16  # lines per write: a call costs as much as some kilobytes, and the joined lines should fit a cache
Past = TypeVar("Past")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Removed(JournalError):
    """The journal was removed while it was written, so nothing of the experiment can be read."""


class Moved(JournalError):
    """The experiment's directory was moved while its journal was written; the journal is intact at its new place."""

    exit_code = UsageError.exit_code


class FileLimit(JournalError):
    """The journal has the size that this process or the file system allows a file; its lines are intact."""

    exit_code = UsageError.exit_code


class Journal:
    """The only writer of an experiment directory's journal. Events are on disk once `commit` has returned.

    If the disk is full, `write` and `commit` raise DiskFull, leave only whole lines, and can be called again.
    """

    def __init__(self, experiment_dir: Path, wall_clock: Callable[[], datetime] = _utc_now) -> None:
        """Lock `experiment_dir` and create its journal.

        Raises UsageError if another process holds the directory or a journal exists.
        """
        self._begin(experiment_dir, wall_clock)
        try:
            self._file = open_regular(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
            self._lock.hold_journal()
            sync_folder(experiment_dir)
        except FileExistsError:
            self._lock.close()
            raise UsageError(f"{self._path} exists: this directory has been used; choose another name") from None
        except OSError as error:
            self._lock.close()
            raise self._cannot_write(error) from error

    @classmethod
    def take_up(
        cls,
        experiment_dir: Path,
        fold: Callable[[Iterator[AnyEvent]], Past],
        wall_clock: Callable[[], datetime] = _utc_now,
    ) -> tuple[Journal, Past]:
        """Reopen an earlier process's journal for writing; return the journal and the result of `fold` on its events.

        An unfinished last line is cut off and kept in a file of its own. Raises UsageError if another process holds the
        journal, JournalError if a line before the last is damaged, and any exception that `fold` raises.
        """
        journal_reading = read(experiment_dir / JOURNAL_NAME)
        journal = cls.__new__(cls)
        journal._begin(experiment_dir, wall_clock)
        try:
            past_events = journal_reading.folded(fold)
            journal._reopen(journal_reading)
        except BaseException:
            journal._lock.close()
            raise
        return journal, past_events

    def _begin(self, experiment_dir: Path, wall_clock: Callable[[], datetime]) -> None:
        """Lock the experiment directory and initialise everything except the file."""
        self.experiment_dir = experiment_dir
        self._path = experiment_dir / JOURNAL_NAME
        self._place = self._path.absolute()  # because users' code may change the directory of this process
        self._wall_clock = wall_clock
        self._n = 0
        self._prev = FIRST_PREV
        self._size = self._committed = 0  # bytes of lines in the file; bytes that are certainly on disk
        self._since: list[bytes] = []  # lines since the last commit
        self._written = 0  # how many of these are in the file
        self._doubtful = False  # True: the contents after `_committed` are unknown
        try:
            self._lock = Lock(experiment_dir)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise DiskFull(
                    f"no space on the disk for {error.filename}; the journal is intact: run the command again"
                ) from error
            raise UsageError(f"cannot write {error.filename}: {error.strerror}; the journal is intact") from error

    def _reopen(self, journal_reading: Reading) -> None:
        """Open the file and continue after its last whole line."""
        self._n = journal_reading.lines
        self._prev = journal_reading.last_crc
        try:
            whole_bytes = self._path.stat().st_size - journal_reading.torn_bytes
            if journal_reading.torn_bytes:
                cut_off(self.experiment_dir, whole_bytes, journal_reading.lines)
            self._file = open_regular(self._path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise self._cannot_write(error) from error
        self._size = self._committed = whole_bytes

    def append(self, event: AnyEvent) -> None:
        """Queue one line; the next `write` or `commit` puts it into the file.

        Raises UsageError if the line would be longer than readers accept.
        """
        data, crc = written(self._n, self._prev, self._wall_clock(), event)
        if len(data) > LONGEST_LINE_BYTES:
            raise UsageError(
                f"line {self._n + 1} of {self._path} would have {len(data) >> 20} MiB, but readers accept at most "
                f"{LONGEST_LINE_BYTES >> 20} MiB; plan fewer runs"
            )
        self._since.append(data)
        self._n += 1
        self._prev = crc

    def write(self) -> None:
        """Write all queued lines to the file, where readers can see them. Raises DiskFull or JournalError on failure.

        Also raises JournalError if other code has changed or removed the file, because new lines would not continue its
        chain of checksums, and Moved if the experiment's directory is no longer at its path: a worker may have written
        the policy of which a queued line speaks to another directory.
        """
        try:
            self._begin_anew()
            self._check_unchanged()
            while self._written < len(self._since):
                lines = self._since[self._written : self._written + _LINES_AT_ONCE]
                data = b"".join(lines)
                write_all(self._file, data)
                self._written += len(lines)
                self._size += len(data)
        except OSError as error:
            self._truncate_partial_line()
            raise self._cannot_write(error) from error

    def commit(self) -> None:
        """Write all queued lines and force them to disk with one fdatasync.

        Raises DiskFull or JournalError on failure.
        """
        self.write()
        try:
            getattr(os, "fdatasync", os.fsync)(self._file)  # faster, but not every system has it
        except OSError as error:
            self._doubtful = True
            raise self._cannot_write(error) from error
        self._committed = self._size
        self._since.clear()
        self._written = 0

    def close(self) -> None:
        """Commit, then close the file and release the lock, even if the commit fails."""
        try:
            self.commit()
        finally:
            with suppress(OSError):  # NFS writes on close and may fail, but what counts was synced
                os.close(self._file)
            self._lock.close()

    def _truncate_partial_line(self) -> None:
        """Truncate a partly written line. Whole lines stay, because a reader may have seen them."""
        if self._doubtful:
            return
        try:
            size = os.fstat(self._file).st_size
            for line in self._since[self._written :]:
                if self._size + len(line) > size:
                    break
                self._written += 1
                self._size += len(line)
            os.ftruncate(self._file, self._size)
        except OSError:
            self._doubtful = True

    def _begin_anew(self) -> None:
        """If the file's state is in doubt, truncate it to the last commit and queue all later lines again.

        A failing sync reports its error only once: the next sync succeeds although the lines never reached the disk.
        """
        if self._doubtful:
            os.ftruncate(self._file, self._committed)
            self._size = self._committed
            self._written = 0
            self._doubtful = False

    def _check_unchanged(self) -> None:
        """Raise Removed, Moved or JournalError if the file is not where and what this process has left."""
        status = os.fstat(self._file)
        moved = not self._is_at_its_path(status)
        if moved:
            status = os.fstat(self._file)  # again: removed since then, it has not been moved
        if not status.st_nlink and not self._place.exists():
            raise Removed(
                f"{self._path} was removed while the experiment was running, and its records with it: launch the "
                "experiment again"
            )
        if status.st_size != self._size or not status.st_nlink:
            if status.st_nlink:
                change = f"has {status.st_size} bytes instead of {self._size}"
            else:
                change = "was replaced"
            check = shell_command("tidy", self.experiment_dir, "--check")
            raise JournalError(
                f"{self._path} was changed by other code, perhaps a reward function: the file {change}; `{check}` "
                "shows what can be recovered"
            )
        if moved:
            raise Moved(
                f"{self.experiment_dir} was moved while the experiment was running, so this stops: the records are "
                f"intact; continue where they are now: {shell_command('resume', self._find_folder())}"
            )

    def _is_at_its_path(self, status: os.stat_result) -> bool:
        try:
            return os.path.samestat(status, self._place.stat())
        except FileNotFoundError:
            return False
        except OSError:
            return True  # a file server that does not answer says nothing of a move

    def _find_folder(self) -> Path | str:
        """Return the folder of the open file, where the system tells it."""
        try:
            return Path(f"/proc/self/fd/{self._file}").readlink().parent
        except OSError:
            return "DIRECTORY"

    def _cannot_write(self, error: OSError) -> DiskFull | JournalError:
        lines = self._n - len(self._since) + self._written
        intact_words = "its 1 line is intact" if lines == 1 else f"its {lines} lines are intact"
        repeat_words = "" if lines else ", then run the command again"
        if error.errno in NO_ROOM:
            next_step = f", then `{shell_command('resume', self.experiment_dir)}`" if lines else repeat_words
            return DiskFull(f"no space on the disk for {self._path}; {intact_words}: free some space{next_step}")
        if error.errno == errno.EFBIG:
            return FileLimit(
                f"{self._path} is as large as a file may be; {intact_words}: raise `ulimit -f`{repeat_words}"
            )
        return JournalError(f"cannot write {self._path}: {error.strerror}; {intact_words}")
