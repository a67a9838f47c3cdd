"""Survive the loss of the terminal: redirect output to EXPERIMENT/console.log, and let the experiment continue.

When a terminal hangs up, its foreground processes get SIGHUP, and every later write to it fails with EIO. A write to a
pipe without a reader fails with EPIPE. So ignoring the signal is not enough, because the next line printed would end
the experiment.
"""

from __future__ import annotations

import errno
import io
import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from esper_ab.contracts.files import open_regular

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

CONSOLE_NAME = "console.log"
_GONE = (errno.EIO, errno.EPIPE, errno.ENXIO)
_STANDARD = (0, 1, 2)
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")  # colours and cursor movements, removed before writing to the file


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Inside this context, show the text `what` on stderr, if stderr is a terminal that can erase text."""
    shown = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if shown:
        _show(f"{what} …")
    try:
        yield
    finally:
        if shown:
            _show("\r\x1b[K")


def _show(text: str) -> None:
    with suppress(OSError):  # the terminal has gone
        sys.stderr.write(text)
        sys.stderr.flush()


def rich_console() -> Console:
    """Create a rich console for stdout. If stdout is not a terminal, output is plain lines, even with FORCE_COLOR.

    rich itself handles NO_COLOR and TERM, and checks at every use whether stdout is still a terminal.
    """
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(force_terminal=False, color_system=None)


def outlive_terminal(experiment_dir: Path) -> None:
    """Keep this process alive when its terminal closes, and write its output to a file from then on.

    Call this once, before the experiment starts; `experiment_dir` need not exist yet. A SIGHUP that is already ignored,
    as under nohup, stays ignored. Streams that are redirected to a file are not changed.
    """
    fallback = _Fallback(experiment_dir)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if _leads_to(getattr(sys, name), descriptor):
            setattr(sys, name, _surviving(getattr(sys, name), descriptor, fallback))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, fallback.hang_up)


def _leads_to(stream: object, descriptor: int) -> bool:
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == descriptor
    except (OSError, ValueError):
        return False


class _Fallback:
    """Redirects the descriptors of a lost terminal to a file, for every writer in this process.

    Terminal output is written through a duplicate of the descriptor. Otherwise, if the signal arrives during a write,
    Python would repeat the write on the redirected descriptor, and the file would get unfiltered terminal output.
    """

    def __init__(self, experiment_dir: Path) -> None:
        self.shown: dict[int, int] = {}  # descriptor -> its duplicate for writing
        self._path = experiment_dir / CONSOLE_NAME
        self._terminals = {descriptor for descriptor in _STANDARD if os.isatty(descriptor)}
        self._replaced: set[int] = set()

    def hang_up(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGHUP by redirecting the terminal's descriptors."""
        self._replace(self._terminals)

    def write(self, descriptor: int, data: ReadableBuffer) -> int:
        """Write like os.write, or to the file if the terminal or the reader is gone.

        Output that cannot be written to the file either, for example because the disk is full, is dropped, so that the
        experiment continues.
        """
        if descriptor in self._replaced:
            return self._to_file(descriptor, data)
        try:
            return os.write(self.shown[descriptor], data)
        except OSError as error:
            if error.errno not in _GONE and descriptor not in self._replaced:
                raise
        if descriptor not in self._replaced:
            self._replace(self._terminals | {descriptor} if descriptor in self._terminals else {descriptor})
        return self._to_file(descriptor, data)

    def _to_file(self, descriptor: int, data: ReadableBuffer) -> int:
        """Write `data` to the file, without the escape sequences that a redraw in progress may contain."""
        with suppress(OSError):
            os.write(descriptor, _ESCAPES.sub(b"", bytes(data)))
        return memoryview(data).nbytes

    def _replace(self, descriptors: set[int]) -> None:
        try:
            file = open_regular(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError:
            file = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        if not self._replaced:
            stamp = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
            with suppress(OSError):
                os.write(file, f"--- {stamp}: the terminal has closed; its output continues here\n".encode())
        for descriptor in descriptors - self._replaced:
            os.dup2(file, descriptor)  # for 0, too: the file cannot be read, like a dead terminal
        self._replaced |= descriptors
        os.close(file)


class _Survivor(io.RawIOBase):
    """The raw layer of a standard stream, which writes through the fallback."""

    def __init__(self, descriptor: int, fallback: _Fallback) -> None:
        self._descriptor = descriptor
        self._fallback = fallback

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        return self._fallback.write(self._descriptor, data)


def _surviving(stream: io.TextIOWrapper, descriptor: int, fallback: _Fallback) -> io.TextIOWrapper:
    with suppress(OSError):
        stream.flush()
    fallback.shown[descriptor] = os.dup(descriptor)
    raw = io.BufferedWriter(_Survivor(descriptor, fallback))
    lines = stream.line_buffering or stream.write_through  # PYTHONUNBUFFERED sets only the latter
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=lines)
