r"""The ledger of a stream: one JSON object per line, each with the SHA-256 of the line before, that anyone can check.

    {"n":3,"previous":"9f86d081…","time":"2026-01-31T10:15:00+00:00","entry":{"type":"begun",…}}

`previous` is the digest of all bytes of the line before, without its newline; the first line has 64 zeros. Only the
process that holds the lock of the folder appends. A last line without a newline was never acknowledged, so it is cut.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from esper_ab.contracts.errors import JournalError, UsageError, refused
from esper_ab.contracts.files_below import open_below, sync_folder, write_all
from esper_ab.contracts.regular_file import read_regular
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.journal.begun import begun
from esper_ab.journal.lock import Lock, holder
from esper_ab.stream.entries import Entry, Opened
from esper_ab.stream.outcomes import EXPERIMENTS

LEDGER = "ledger.jsonl"
_FIRST = "0" * 64


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line."""

    n: int
    previous: str
    time: str
    entry: Entry


_decoder = msgspec.json.Decoder(_Line)


class Ledger:
    """The entries of a stream. Only `appending` gives one to which entries can be added."""

    def __init__(self, folder: Path) -> None:
        """Read the ledger; UsageError if there is none, and JournalError, with the line, if it is damaged."""
        self.folder = folder
        self.path = folder / LEDGER
        self.entries: list[Entry] = []
        self.head = _FIRST  # digest of the last line
        self.torn_bytes = 0  # after the last newline
        self._read()

    def append(self, entry: Entry) -> None:
        """Add an entry, and return when it is on disk; raises DiskFull, and UsageError if it cannot be written."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        line = msgspec.json.encode(_Line(len(self.entries), self.head, now, entry))
        try:
            descriptor = open_below(self.folder, LEDGER, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                os.ftruncate(descriptor, os.fstat(descriptor).st_size - self.torn_bytes)
                self.torn_bytes = 0
                write_all(descriptor, line + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            sync_folder(self.folder)
        except OSError as error:
            raise refused(error, f"{self.path}: {error.strerror}") from None
        self.entries.append(entry)
        self.head = hashlib.sha256(line).hexdigest()

    def _read(self) -> None:
        try:
            data = read_regular(self.path)
        except FileNotFoundError:
            return
        except OSError as error:
            raise UsageError(f"{self.path}: {error.strerror}") from None
        *lines, torn_line = data.split(b"\n")
        self.torn_bytes = len(torn_line)
        for number, line in enumerate(lines):
            self.entries.append(self._decoded(number, line))
            self.head = hashlib.sha256(line).hexdigest()

    def _decoded(self, number: int, line: bytes) -> Entry:
        place = f"{self.path}: line {number + 1}"
        try:
            decoded_line = _decoder.decode(line)
        except (*UNREADABLE, RecursionError) as error:
            raise JournalError(f"{place} is damaged, or of another version of esper_ab: {error}") from None
        if decoded_line.previous != self.head or decoded_line.n != number:
            raise JournalError(
                f"{place} does not follow from the line before it: a line was changed, removed or added; put back a "
                "copy of the ledger"
            )
        if isinstance(decoded_line.entry, Opened) != (number == 0):
            raise JournalError(f"{place} has an entry {decoded_line.entry.__struct_config__.tag!r} out of place")
        return decoded_line.entry


def read_ledger(folder: Path) -> Ledger:
    """Return the ledger of a stream, for reading; raises as `Ledger` and `refuse_lost_ledger` do."""
    ledger = Ledger(folder)
    if not ledger.entries:
        refuse_lost_ledger(folder)
        raise UsageError(
            f"{folder}: there is no stream here; `{shell_command('stream', 'new', folder, 'stream.toml')}` makes one"
        )
    return ledger


def refuse_lost_ledger(folder: Path) -> None:
    """Raise UsageError if a folder without a ledger has experiments: of a stream, or others.

    A stream's first line is on disk before its first experiment.
    """
    for directory in sorted((folder / EXPERIMENTS).glob("*")):
        if begun(directory):
            raise UsageError(
                f"{folder}: {EXPERIMENTS}/{directory.name} is there, but no {LEDGER}, which has the question and every "
                "decision of a stream; put back a copy of it, or make the stream in a new folder"
            )


@contextmanager
def appending(folder: Path) -> Iterator[Ledger]:
    """Inside this context, no other process can append to the ledger of a stream; UsageError if one does already."""
    read_ledger(folder)  # before the lock, which makes a file
    if (present_holder := holder(folder)) is not None:
        raise UsageError(
            f"{folder}: {present_holder} is trying a candidate; wait until it is decided, because the order of "
            "candidates sets their levels"
        )
    with closing(Lock(folder)):
        yield read_ledger(folder)
