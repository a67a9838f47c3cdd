"""Observers of an experiment. Whatever an observer does, it can neither break the experiment nor slow it down."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from typing import Protocol

from esper_ab.contracts.messages import Progress
from esper_ab.journal.events import (
    AnyEvent,
)

_PROGRESS_BACKLOG = 1000  # with more events waiting, progress messages are dropped, but never journalled events
_CLOSE_S = 5.0


Observed = AnyEvent | Progress | str  # text: a warning, which is shown at once and not journalled


class Observer(Protocol):
    """Receives all journalled events and signs of life in order, and all warnings, on its own thread.

    An event arrives after it was journalled. A warning arrives immediately, ahead of queued events.
    """

    def observe(self, event: Observed) -> None: ...


class ObserverThread:
    """Notifies observers from a thread with a queue. An observer that raises is logged once and dropped."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = list(observers)
        self._queue: queue.SimpleQueue[Sequence[Observed] | None] = queue.SimpleQueue()
        self._untold: list[Observed] = []
        self._told = self._passed_on = 0  # numbers of events; the experiment's thread sets the first, ours the second
        self._thread = threading.Thread(target=self._tell_all, name="observers", daemon=True)
        self._thread.start()

    def note(self, event: AnyEvent | Progress) -> None:
        """Keep an event for the next `tell`; do nothing if there are no observers."""
        if self._observers:
            self._untold.append(event)

    def keep(self, kind: type[AnyEvent]) -> None:
        """Drop the noted events that are not instances of `kind`."""
        self._untold = [event for event in self._untold if isinstance(event, kind)]

    def tell(self) -> None:
        """Queue the noted events as one batch and return at once.

        Queueing them one by one would slow down every write.
        """
        events = self._untold
        self._untold = []
        if not events:
            return
        if self._told - self._passed_on >= _PROGRESS_BACKLOG:
            events = [event for event in events if not isinstance(event, Progress)]
        self._put(events)

    def tell_at_once(self, text: str) -> None:
        """Queue this text immediately, ahead of the events that await the next `tell`."""
        self._put([text])

    def _put(self, events: Sequence[Observed]) -> None:
        self._told += len(events)
        self._queue.put(events)

    def close(self) -> None:
        """Wait a few seconds for the observers to catch up, then abandon any that is stuck."""
        self._queue.put(None)
        self._thread.join(_CLOSE_S)

    def _tell_all(self) -> None:
        while (events := self._queue.get()) is not None:
            for event in events:
                for observer in tuple(self._observers):
                    try:
                        observer.observe(event)
                    except Exception:
                        self._observers.remove(observer)
                        logging.getLogger(__name__).exception("%r failed and gets no further events", observer)
                self._passed_on += 1
