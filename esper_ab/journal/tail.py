"""Following a journal that is being written: the events there are, and later those appended since."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from esper_ab.journal.file import Reading, check_there

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
        with self._path.open("rb") as file:
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
