"""Ctrl-C and SIGTERM as bytes on a file descriptor that can be polled, instead of exceptions."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import Any

_CAUGHT = (signal.SIGINT, signal.SIGTERM)


class CaughtSignals:
    """Inside this context, a signal makes `descriptor` readable. Outside the main thread, no signals are caught."""

    def __init__(self) -> None:
        self.descriptor, self._write_end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._write_end, False)
        self._before: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1

    def __enter__(self) -> CaughtSignals:
        if threading.current_thread() is threading.main_thread():
            self._wakeup_before = signal.set_wakeup_fd(self._write_end, warn_on_full_buffer=False)
            self._before = {number: signal.signal(number, _noted_by_the_wakeup_descriptor) for number in _CAUGHT}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            signal.set_wakeup_fd(self._wakeup_before)
        os.close(self.descriptor)
        os.close(self._write_end)

    def read(self) -> tuple[signal.Signals, ...]:
        """Return the signals caught since the last call."""
        try:
            numbers = os.read(self.descriptor, 64)
        except BlockingIOError:
            return ()
        return tuple(signal.Signals(number) for number in numbers if number in _CAUGHT)

    def ctrl_c(self) -> bool:
        """Read the caught signals; return True if one was Ctrl-C."""
        return signal.SIGINT in self.read()


def _noted_by_the_wakeup_descriptor(number: int, frame: FrameType | None) -> None:
    """Do nothing: the wake-up descriptor is written only if a handler exists."""
