"""Start workers in waves: only a limited number are starting at a time, and the others wait for their turn.

A starting worker loads libraries and shakes hands within a time limit, and ten thousand at once would slow each other
down beyond it. A worker counts as starting from its turn until it has said Hello, is told to end, or could not be
started.
"""

from __future__ import annotations

from itertools import islice

AT_ONCE = 256


class Waves:
    """Lanes whose workers wait for their turn to start, first come first served, and lanes whose workers start."""

    def __init__(self, start_limit: int) -> None:
        self._at_once = start_limit
        self._waiting: dict[str, None] = {}  # in order
        self._starting: set[str] = set()

    def ask(self, lane: str) -> None:
        """Queue the start of the lane's worker, replacing an earlier start."""
        self._starting.discard(lane)
        self._waiting[lane] = None

    def over(self, lane: str) -> None:
        """Note that the lane's worker is no longer starting."""
        self._starting.discard(lane)

    def turns(self) -> tuple[str, ...]:
        """Return the lanes whose turn it is, and count their workers as starting."""
        turns = tuple(islice(self._waiting, max(0, self._at_once - len(self._starting))))
        for lane in turns:
            del self._waiting[lane]
        self._starting.update(turns)
        return turns
