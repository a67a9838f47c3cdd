"""Waiting for the end of a worker, by the descriptor that shows it."""

from __future__ import annotations

import select


def wait_for(sentinel: int, timeout_s: float) -> None:
    """Return once the descriptor is readable, or after `timeout_s`."""
    end = select.poll()
    end.register(sentinel, select.POLLIN)
    end.poll(timeout_s * 1000)
