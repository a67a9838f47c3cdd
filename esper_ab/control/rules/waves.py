"""Starts in waves: of many workers only so many are starting at a time, and the others wait for their turn.

Whoever is starting loads libraries, shakes hands and has a limit on the time for that; ten thousand at once would keep
one another from it. A worker is starting from its turn until it has said Hello, is to be ended or could not be started.
"""

from __future__ import annotations

AT_ONCE = 256


class Waves:
    """Lanes whose workers wait for their turn, first come first served, and those whose workers are starting."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._waiting: dict[str, None] = {}  # in order
        self._starting: set[str] = set()

    def ask(self, lane: str) -> None:
        """The lane's worker is to be started when it is its turn. What was starting there before is over."""
        self._starting.discard(lane)
        self._waiting[lane] = None

    def over(self, lane: str) -> None:
        """The lane's worker is not starting any more."""
        self._starting.discard(lane)

    def turns(self) -> tuple[str, ...]:
        """Lanes whose turn it is now: their workers are starting from here on."""
        free = max(0, self._at_once - len(self._starting))
        turns = tuple(lane for lane, _ in zip(self._waiting, range(free), strict=False))
        for lane in turns:
            del self._waiting[lane]
        self._starting.update(turns)
        return turns
