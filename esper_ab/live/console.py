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
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from esper_ab.contracts.files_below import make_folder
from esper_ab.contracts.regular_file import open_regular
from esper_ab.live.early_hang_up import hung_up

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

CONSOLE_NAME = "console.log"
_GONE = (errno.EIO, errno.EPIPE, errno.ENXIO)
_STANDARD = (0, 1, 2)
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")  # colours and cursor movements, removed before writing to the file


@contextmanager
def waiting(activity: str) -> Iterator[None]:
    """Inside this context, show the text `activity` on stderr, if stderr is a terminal that can erase text."""
    can_erase = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if can_erase:
        _show(f"{activity} …")
    try:
        yield
    finally:
        if can_erase:
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

    if sys.stdout.isatty():
        return Console()
    return Console(force_terminal=False, color_system=None)


def outlive_terminal(experiment_dir: Path | None = None) -> Fallback:
    """Keep this process alive when its terminal closes, and write its output to a file from then on.

    Call this once, before the experiment starts; `experiment_dir` need not exist yet, and may be given later by
    `Fallback.use`. A SIGHUP that is already ignored, as under nohup, stays ignored. Streams that are redirected to a
    file are not changed.
    """
    fallback = Fallback()
    if experiment_dir is not None:
        fallback.use(experiment_dir)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        if _writes_to(getattr(sys, name), descriptor):
            setattr(sys, name, _surviving(getattr(sys, name), descriptor, fallback))
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, fallback.hang_up)
        if hung_up():
            fallback.hang_up(signal.SIGHUP, None)
    return fallback


def _writes_to(stream: object, descriptor: int) -> bool:
    try:
        return isinstance(stream, io.TextIOWrapper) and stream.fileno() == descriptor
    except (OSError, ValueError):
        return False


class Fallback:
    """Redirects the descriptors of a lost terminal to a file, for every writer in this process.

    While the experiment has no directory, the output is held in a temporary file, and moved once there is a directory.

    Terminal output is written through a duplicate of the descriptor. Otherwise, if the signal arrives during a write,
    Python would repeat the write on the redirected descriptor, and the file would get unfiltered terminal output.
    """

    def __init__(self) -> None:
        self.duplicates: dict[int, int] = {}  # descriptor -> its duplicate for writing
        self._path: Path | None = None
        self._held: int | None = None  # descriptor of the temporary file
        self._terminals = {descriptor for descriptor in _STANDARD if os.isatty(descriptor)}
        self._replaced: set[int] = set()

    def use(self, experiment_dir: Path) -> None:
        """Write to the file in this directory, as soon as the directory exists."""
        self._path = experiment_dir / CONSOLE_NAME
        self._settle()

    def leave(self, folder: Path) -> None:
        """Write held output to `folder`, which is created if necessary; call this when the process ends."""
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        if self._held is not None:
            with suppress(OSError):
                make_folder(folder)
            self.use(folder)

    def hang_up(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGHUP by redirecting the terminal's descriptors."""
        self._replace(self._terminals)

    def write(self, descriptor: int, data: ReadableBuffer) -> int:
        """Write like os.write, or to the file if the terminal or the reader is gone.

        Output that cannot be written to the file either, for example because the disk is full, is dropped, so that the
        experiment continues.
        """
        if descriptor in self._replaced:
            self._settle()
            return self._write_to_file(descriptor, data)
        try:
            return os.write(self.duplicates[descriptor], data)
        except OSError as error:
            if error.errno not in _GONE and descriptor not in self._replaced:
                raise
        if descriptor not in self._replaced:
            self._replace(self._terminals if descriptor in self._terminals else {descriptor})
        return self._write_to_file(descriptor, data)

    def _write_to_file(self, descriptor: int, data: ReadableBuffer) -> int:
        """Write `data` to the file, without the escape sequences that a redraw in progress may contain."""
        with suppress(OSError):
            os.write(descriptor, _ESCAPES.sub(b"", bytes(data)))
        return memoryview(data).nbytes

    def _replace(self, descriptors: set[int]) -> None:
        file = self._open()
        if file is None:
            file = self._hold()
        if not self._replaced:
            stamp = f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
            with suppress(OSError):
                os.write(file, f"--- {stamp}: the terminal has closed; its output continues here\n".encode())
        for descriptor in descriptors - self._replaced:
            os.dup2(file, descriptor)  # for 0, too: the file cannot be read, like a dead terminal
        self._replaced |= descriptors
        os.close(file)

    def _open(self) -> int | None:
        """Open the file; None while its directory is unknown or missing."""
        if self._path is None:
            return None
        try:
            return open_regular(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError:
            return None

    def _hold(self) -> int:
        """Open the temporary file, or the null device if there is no room for files."""
        try:
            if self._held is None:
                with tempfile.TemporaryFile() as file:
                    self._held = os.dup(file.fileno())
            return os.dup(self._held)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)

    def _settle(self) -> None:
        """Move held output to the file, if it can be opened by now."""
        if self._held is None or (file := self._open()) is None:
            return
        held_file = self._held
        self._held = None
        with suppress(OSError):
            os.write(file, os.pread(held_file, os.fstat(held_file).st_size, 0))
        for descriptor in self._replaced:
            os.dup2(file, descriptor)
        os.close(file)
        os.close(held_file)


class _Survivor(io.RawIOBase):
    """The raw layer of a standard stream, which writes through the fallback."""

    def __init__(self, descriptor: int, fallback: Fallback) -> None:
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


def _surviving(stream: io.TextIOWrapper, descriptor: int, fallback: Fallback) -> io.TextIOWrapper:
    with suppress(OSError):
        stream.flush()
    fallback.duplicates[descriptor] = os.dup(descriptor)
    raw = io.BufferedWriter(_Survivor(descriptor, fallback))
    lines = stream.line_buffering or stream.write_through  # PYTHONUNBUFFERED sets only the latter
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=lines)
