"""The training episode records of one run: in memory, or read from the journal on request."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from esper_ab.contracts.errors import JournalError
from esper_ab.contracts.files import open_to_read
from esper_ab.contracts.records import EpisodeRecord
from esper_ab.journal.events import EpisodeRecorded, event_of
from esper_ab.journal.file import read


class Episodes(Mapping[int, EpisodeRecord]):
    """Mapping from episode to complete record. Records on disk are read anew on each access and not kept in memory.

    JournalError for a line that was damaged meanwhile.
    """

    def __init__(self) -> None:
        self._at: dict[int, EpisodeRecord | int] = {}  # a record, or the byte offset of its line in the journal
        self._path = Path()

    def __setitem__(self, episode: int, record: EpisodeRecord) -> None:
        self._at[episode] = record

    def __getitem__(self, episode: int) -> EpisodeRecord:
        found = self._at[episode]
        if isinstance(found, EpisodeRecord):
            return found
        with open_to_read(self._path) as file:
            file.seek(found)
            event = event_of(file.readline())
        if not isinstance(event, EpisodeRecorded):
            deque(read(self._path), maxlen=0)  # raises with the line and the reason
            raise JournalError(f"{self._path} was changed while it was read: no episode where there was one")
        return event.record

    def __iter__(self) -> Iterator[int]:
        return iter(self._at)

    def __len__(self) -> int:
        return len(self._at)

    def leave_in(self, path: Path, episode: int, offset: int) -> None:
        """Add an episode whose line begins `offset` bytes into the journal at `path`."""
        self._path = path
        self._at[episode] = offset
