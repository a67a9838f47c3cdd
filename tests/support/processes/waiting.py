"""Wait for a condition, or limit the time of a call."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Answer = TypeVar("Answer")


def eventually(ask_once: Callable[[], Answer], seconds: float = 600.0) -> Answer:
    """Poll `ask_once` until its answer is true, and return the answer; AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (answer := ask_once()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s"
        time.sleep(0.02)
    return answer


class TookTooLong(BaseException):
    """The call took longer than it may; no `except Exception` or `except OSError` of the call catches this."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TookTooLong in the main thread after `seconds`, even if a system call is waiting."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    previous_handler = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous_handler)
