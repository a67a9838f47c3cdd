"""Wall time of an episode by phase; used in records only, never in computation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from esper_ab.contracts.records import Timing


class Stopwatch:
    """Sums wall time by phase since the last `lap`."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._phases: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time inside the context to `name`: "train", "validate", "decide" or "update"."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._phases[name] = self._phases.get(name, 0.0) + time.monotonic() - start

    def lap(self) -> Timing:
        """Return the times since the last lap, and start the next."""
        now = time.monotonic()
        spent = {f"{name}_s": self._phases.get(name, 0.0) for name in ("train", "validate", "decide", "update")}
        timing = Timing(total_s=now - self._start, **spent)
        self._start, self._phases = now, {}
        return timing
