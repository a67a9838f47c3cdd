"""The training episodes of one run as records, made from its columns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.contracts.regular_file import open_to_read
from esper_ab.journal.events import EpisodeRecorded
from esper_ab.journal.line import event_of
from esper_ab.journal.reading import read


class Episodes(Mapping[int, EpisodeRecord]):
    """Mapping from episode to its complete record. Records are read from disk on each access and not kept in memory.

    Raises JournalError for a line that was damaged after it was first read.
    """

    def __init__(self) -> None:
        self._places: dict[int, EpisodeRecord | int] = {}  # a record, or the byte offset of its line in the journal
        self._path = Path()

    def __setitem__(self, episode: int, record: EpisodeRecord) -> None:
        self._places[episode] = record

    def __getitem__(self, episode: int) -> EpisodeRecord:
        place = self._places[episode]
        if isinstance(place, EpisodeRecord):
            return place
        with open_to_read(self._path) as file:
            file.seek(place)
            event = event_of(file.readline())
        if not isinstance(event, EpisodeRecorded):
            deque(read(self._path), maxlen=0)  # raises an error with the line and the reason
            raise JournalError(f"{self._path} was changed while it was read: an episode is no longer where it was")
        return event.record

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def leave_in(self, path: Path, episode: int, offset: int) -> None:
        """Add an episode whose line begins `offset` bytes into the journal at `path`."""
        self._path = path
        self._places[episode] = offset
