"""A limit to how long a call in this process may take."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TookTooLong(BaseException):
    """The call took longer than it may; no `except Exception` or `except OSError` of the call catches this."""


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise TookTooLong in the main thread after `seconds`, also out of a system call that waits."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
