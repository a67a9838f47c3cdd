"""A child process that is given one line and answers on its standard output."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import BinaryIO, Protocol, Self


class ChildProcess(AbstractContextManager["ChildProcess"], Protocol):
    """A started process, with the interface of `subprocess.Popen`; leaving the context waits for its end."""

    pid: int

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status; raises subprocess.TimeoutExpired while the process runs."""

    def kill(self) -> None:
        """Send SIGKILL."""


class Child:
    """A process with `line` as its input. Leaving the context kills the process.

    Input and output are files. A pipe for the input would block until the process reads it, and a pipe for the output
    would stay open while a helper process that user code started is alive.
    """

    def __init__(self, begin: Callable[[Sequence[int]], ChildProcess], line: bytes) -> None:
        """`begin` starts the process, given the descriptors of its standard input, output and error."""
        self.returncode: int | None = None
        with ExitStack() as stack:
            question_file: BinaryIO = stack.enter_context(tempfile.TemporaryFile())
            self._answer: BinaryIO = stack.enter_context(tempfile.TemporaryFile())
            self._complaint: BinaryIO = stack.enter_context(tempfile.TemporaryFile())
            question_file.write(line)
            question_file.seek(0)
            self._process = begin([question_file.fileno(), self._answer.fileno(), self._complaint.fileno()])
            self._files = stack.pop_all()  # kept open until the context is left

    @property
    def pid(self) -> int:
        return self._process.pid

    def communicate(self, *, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Same as `Errand.communicate`."""
        try:
            self.returncode = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            error.stderr = _written(self._complaint)
            raise
        return _written(self._answer), _written(self._complaint)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._files, self._process:
            self._process.kill()


def _written(file: BinaryIO) -> bytes:
    """Return the contents of a file; leaves its offset, which the process shares."""
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)


def child_of(command: Sequence[str], line: bytes, environment: Mapping[str, str]) -> Child:
    """Run `command` with `line` as its input.

    The child has its own session, so closing the terminal does not end it while this process continues.
    """
    return Child(
        lambda standard: subprocess.Popen(
            command, stdin=standard[0], stdout=standard[1], stderr=standard[2], env=environment, start_new_session=True
        ),
        line,
    )
