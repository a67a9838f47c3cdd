"""Read a journal: verify every line, and say which is damaged. Handles bytes and lines, whose form is in file.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

from esper_ab.contracts.errors import JournalError, UsageError
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.contracts.shell_command import shell_command
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.journal.events import AnyEvent
from esper_ab.journal.line import (
    FIRST_PREV,
    LONGEST_LINE_BYTES,
    Line,
    decode,
    lost_newline,
    other_writer,
    stamp_text,
    wrong_tail,
)

Past = TypeVar("Past")
_EXPERIMENTS = Path("experiments")  # where commands make experiment directories, unless told otherwise


class OtherVersion(JournalError):
    """An intact line contains something that this version of esper_ab does not know."""


class Reading(Iterator[AnyEvent]):
    """Lazy iterator over a journal's verified events, in order; raises JournalError at the first damaged line.

    The attributes describe the part read so far: number of intact `lines`, `last_crc`, `intact_bytes`, and `torn_bytes`
    of an unfinished last line (0 until the end is reached).
    """

    def __init__(self, path: Path, source: Iterator[bytes] | None = None) -> None:
        """Read the lines of `path`, or those from `source` if given."""
        self._path = path
        self._source = _lines(path) if source is None else source
        self.last_crc = FIRST_PREV
        self.lines = 0
        self.intact_bytes = 0
        self.torn_bytes = 0
        self._stamp: datetime | None = None

    def __next__(self) -> AnyEvent:
        data = next(self._source)
        if len(data) > LONGEST_LINE_BYTES:
            raise self._damaged(f"it is longer than {LONGEST_LINE_BYTES >> 20} MiB")
        if not data.endswith(b"\n"):
            if lost_newline(data):
                raise self._damaged("its last byte is not a newline")
            if not self.lines and b"\0" in data:
                raise self._damaged("it contains zero bytes, as after a power cut")
            self.torn_bytes = len(data)
            raise StopIteration
        line = self._verify(data)
        self.lines += 1
        self.intact_bytes += len(data)
        self.last_crc = line.crc
        self._stamp = line.t
        return line.event

    def folded(self, fold: Callable[[Iterator[AnyEvent]], Past]) -> Past:
        """Return the result of `fold` on the events; raises JournalError if the file cannot be read."""
        try:
            return fold(self)
        except OSError as error:
            raise JournalError(f"cannot read {self._path}: {error.strerror}") from error

    @property
    def wall_time(self) -> str:
        """Wall time of the last event, ISO 8601; "" before the first."""
        return "" if self._stamp is None else stamp_text(self._stamp)

    def misfit(self, reason: str) -> JournalError:
        """Return the error for a last line that is intact but cannot come from esper_ab; `reason` says why."""
        return JournalError(f"{self._path}, line {self.lines}: intact, but {reason}: not a journal of esper_ab")

    def _verify(self, data: bytes) -> Line:
        tail_problem = wrong_tail(data)
        if tail_problem:
            raise self._damaged(tail_problem)
        try:
            line = decode(data)
        except UNREADABLE as error:
            if writer := other_writer(data):
                raise OtherVersion(f"{self._path} was written by {writer}: read it with that version") from None
            complaint = (
                f"intact, but unknown to this version of esper_ab ({error}): read it with the version that wrote it"
            )
            raise OtherVersion(f"{self._path}, line {self.lines + 1}: {complaint}") from None
        if (line.n, line.prev) != (self.lines, self.last_crc):
            expected = f"expected n={self.lines} after {self.last_crc}"
            raise self._damaged(f"it is line n={line.n} after {line.prev}; {expected}")
        return line

    def _damaged(self, complaint: str) -> JournalError:
        check = shell_command("tidy", self._path.parent, "--check")
        remedy = f"the {self.lines} before it are intact; `{check}` shows what can be recovered"
        return JournalError(f"{self._path}, line {self.lines + 1}: {complaint}; {remedy}")


def read(path: Path) -> Reading:
    """Return a lazy reader of a journal's events.

    Raises UsageError if there is no file. Reading raises JournalError at a damaged line.
    """
    check_exists(path)
    return Reading(path)


def check_exists(path: Path) -> None:
    """Raise UsageError if there is no journal at `path`; the error suggests the experiment with the closest name."""
    if not path.is_file():
        elsewhere = _EXPERIMENTS / path.parent  # if the user has named an experiment and not its directory
        siblings = [journal.parent.name for journal in path.parent.parent.glob(f"*/{path.name}")]
        hint = f"an experiment directory holds {path.name}"
        for name in get_close_matches(path.parent.name, siblings, n=1):
            hint = f"did you mean {path.parent.with_name(name)}?"
        if (elsewhere / path.name).is_file():
            hint = f"did you mean {elsewhere}?"
        raise UsageError(f"no journal at {path}; {hint}")


def _lines(path: Path) -> Iterator[bytes]:
    with open_to_read(path) as file:
        while line := file.readline(LONGEST_LINE_BYTES + 1):
            yield line
