"""The training episode records of one run: in memory, or read from the journal on request."""

from __future__ import annotations

from array import array
from bisect import bisect_left
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
        self._here: dict[int, EpisodeRecord] = {}
        self._path = Path()
        self._there = array("q")  # episodes, ascending
        self._offsets = array("q")  # byte offsets of their lines in the journal

    def __setitem__(self, episode: int, record: EpisodeRecord) -> None:
        self._here[episode] = record

    def __getitem__(self, episode: int) -> EpisodeRecord:
        if episode in self._here:
            return self._here[episode]
        place = bisect_left(self._there, episode)
        if place == len(self._there) or self._there[place] != episode:
            raise KeyError(episode)
        with open_to_read(self._path) as file:
            file.seek(self._offsets[place])
            event = event_of(file.readline())
        if not isinstance(event, EpisodeRecorded):
            deque(read(self._path), maxlen=0)  # raises with the line and the reason
            raise JournalError(f"{self._path} was changed while it was read: no episode where there was one")
        return event.record

    def __iter__(self) -> Iterator[int]:
        yield from (episode for episode in self._there if episode not in self._here)
        yield from self._here

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def leave_in(self, path: Path, episodes: array[int], offsets: array[int]) -> None:
        """Add later episodes without reading them; `offsets`: where their lines begin in the file at `path`, bytes."""
        self._path = path
        self._there.extend(episodes)
        self._offsets.extend(offsets)
