"""A child process that is given one line and answers on its standard output."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, Self


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
        self._files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115  closed in __exit__
        standard_input = self._files[0]
        standard_input.write(line)
        standard_input.seek(0)
        self._process = begin([file.fileno() for file in self._files])
        self.returncode: int | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    def communicate(self, *, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Same as `Errand.communicate`."""
        try:
            self.returncode = self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            error.stderr = self._written(2)
            raise
        return self._written(1), self._written(2)

    def _written(self, descriptor: int) -> bytes:
        file = self._files[descriptor].fileno()
        return os.pread(file, os.fstat(file).st_size, 0)  # leaves the offset, which the process shares

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.kill()
        for file in self._files:
            file.close()


def child_of(command: Sequence[str], line: bytes, environment: Mapping[str, str]) -> Child:
    """Run `command` with `line` as its input.

    It has a session of its own, so that a terminal that closes does not end it while this process goes on.
    """
    return Child(
        lambda standard: subprocess.Popen(
            command, stdin=standard[0], stdout=standard[1], stderr=standard[2], env=environment, start_new_session=True
        ),
        line,
    )
