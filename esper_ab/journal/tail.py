"""A journal that somebody is writing: the events there are, and later, from the same reading, those added since."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from esper_ab.contracts.errors import UsageError
from esper_ab.journal.file import Reading

_CHUNK_BYTES = 1 << 20


class _Tail(Iterator[bytes]):
    """Whole lines. An unfinished last one is read anew each time: its writer may take it back and write another."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # of the first byte not yet read as part of a whole line
        self._whole: deque[bytes] = deque()  # read and not yet given out

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
    """As `file.read`; iterated again after its end it goes on with what was appended. UsageError without a file."""
    if not path.is_file():
        raise UsageError(f"no journal at {path}; a run directory holds {path.name}")
    return Reading(path, _Tail(path))
