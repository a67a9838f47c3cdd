"""Follow a journal that is being written: first the events in it, and later those that are appended."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.regular_file import open_to_read
from esper_ab.journal.line import LONGEST_LINE_BYTES
from esper_ab.journal.reading import Reading, check_exists

_CHUNK_BYTES = 1 << 20


class _Tail(Iterator[bytes]):
    """Iterator over whole lines. It rereads an unfinished last line each time, because its writer may replace it."""

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
            if b"\n" not in data:
                data += file.readline(LONGEST_LINE_BYTES + 1)
        *whole_lines, unread_bytes = data.split(b"\n")
        self._whole.extend(line + b"\n" for line in whole_lines)
        if len(unread_bytes) > LONGEST_LINE_BYTES:
            self._whole.append(unread_bytes)  # the reader refuses it
        self._offset += sum(map(len, self._whole))


def follow(path: Path) -> Reading:
    """Return a reader of a growing journal: after the end, iterating again yields new events.

    Raises UsageError if there is no file.
    """
    check_exists(path)
    return Reading(path, _Tail(path))
