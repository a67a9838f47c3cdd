"""Observers of an experiment: whatever they do with what they are told, they neither break it nor slow it down."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from typing import Protocol

from esper_ab.contracts.messages import Progress
from esper_ab.journal.events import AnyEvent

_PROGRESS_BACKLOG = 1000  # beyond it signs of life are not told; journalled events always are
_CLOSE_S = 5.0


Observed = AnyEvent | Progress | str  # a text: what the user should see at once and the journal need not keep


class Observer(Protocol):
    """Is told, on a thread of its own, every journalled event and sign of life, in order, and warnings.

    An event comes once it is in the journal, a warning at once: before the events of its round.
    """

    def observe(self, event: Observed) -> None: ...


class ObserverThread:
    """Tells observers from a thread with a queue. One that raises is named once in the log and told no more."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._queue: queue.SimpleQueue[Sequence[Observed] | None] = queue.SimpleQueue()
        self._untold: list[Observed] = []
        self._told = self._passed_on = 0  # events; the first is of the experiment's thread, the second of ours
        self._thread = threading.Thread(target=self._tell_all, name="observers", daemon=True)
        self._thread.start()

    def note(self, event: AnyEvent | Progress) -> None:
        """Keep for the next `tell`, as long as there is anybody to tell."""
        if self._observers:
            self._untold.append(event)

    def keep(self, kind: type[AnyEvent]) -> None:
        """Forget what was noted and is not of this kind."""
        self._untold = [event for event in self._untold if isinstance(event, kind)]

    def tell(self) -> None:
        """Tell what was noted, and return at once. One by one it would hold up every write."""
        events, self._untold = self._untold, []
        if not events:
            return
        if self._told - self._passed_on >= _PROGRESS_BACKLOG:
            events = [event for event in events if not isinstance(event, Progress)]
        self._put(events)

    def tell_at_once(self, text: str) -> None:
        """Tell this, and not yet what was noted."""
        if self._observers:
            self._put([text])

    def _put(self, events: Sequence[Observed]) -> None:
        self._told += len(events)
        self._queue.put(events)

    def close(self) -> None:
        """Let the observers catch up for a few seconds; one that is stuck is left behind."""
        self._queue.put(None)
        self._thread.join(_CLOSE_S)

    def _tell_all(self) -> None:
        while (events := self._queue.get()) is not None:
            for event in events:
                self._tell(event)
                self._passed_on += 1

    def _tell(self, event: Observed) -> None:
        for observer in tuple(self._observers):
            try:
                observer.observe(event)
            except Exception:
                self._observers.remove(observer)
                logging.getLogger(__name__).exception("%r failed and is told no more", observer)
