"""The coordinator's side of a machine's start process (`workers/process/start_process`) and of what it starts.

A request is one byte with descriptors: a file with the request as JSON, a socket for answers about this one child, and
descriptors for the child. The answers are "started PID WHY", with a pidfd, or "failed ERRNO", and then "ended STATUS".
If the start process ends, so do all its children.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import Self

from esper_ab.contracts.own_packages import child_command, child_environment

DESCRIPTORS = 1  # the socket for requests
_MODULE = "workers.process.start_process"
_MODULES = {True: "BEFORE_FORK", False: "BEFORE_FORK_OF_GUARDS"}  # lists of the workers' entry point
_ANSWER_BYTES = 512
_SENT_TO_ALL = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
_LONGEST_IMPORT_S = 300.0  # torch from a cold network disk, on a busy machine
_KILL_S = 5.0  # for the kernel to end processes that were killed


class StartedProcess:
    """A child of the start process, which `wait` reaps."""

    def __init__(self, answers: socket.socket) -> None:
        self._answers = answers
        self._pidfd = -1
        self.pid = 0  # 0: not yet started
        self.returncode: int | None = None
        self.spawned_because = ""  # why it was not forked; "" if it was

    def fileno(self) -> int:
        """Return the descriptor that becomes readable, and stays so, when a started process has ended.

        -1 once closed.
        """
        return self._answers.fileno()

    def await_start(self, timeout_s: float = _LONGEST_IMPORT_S) -> None:
        """Wait until it has been started.

        Raises ConnectionResetError if the start process has ended or does not answer, and OSError if a resource is
        missing.
        """
        if not self.pid:
            self._hear(timeout_s)
        if not self.pid:
            raise ConnectionResetError(errno.EAGAIN, "the start process has ended or hangs")

    def poll(self) -> int | None:
        """Return its exit status, as in `subprocess`; None while it runs."""
        while self.returncode is None and self._hear(0.0):
            pass
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status. Raises subprocess.TimeoutExpired while it runs, OSError if it cannot be started."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            if not self._hear(None if deadline is None else max(0.0, deadline - time.monotonic())):
                raise subprocess.TimeoutExpired(_MODULE, timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None and self._pidfd >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        self._answers.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self.returncode is None:
                self.await_start()
                self.kill()
                self.wait()
        except OSError:
            return  # it was never started
        finally:
            self.close()

    def _hear(self, timeout_s: float | None) -> bool:
        """Take the next answer; return False if none arrives in time. Raises OSError if no process can be started."""
        if not wait([self._answers], timeout_s):
            return False
        data, descriptors, *_ = socket.recv_fds(self._answers, _ANSWER_BYTES, 1)
        match data.decode().split(" ", 2):
            case ["started", pid, spawn_reason]:
                self._take(int(pid), descriptors, spawn_reason)
            case ["failed", number]:
                raise OSError(int(number), os.strerror(int(number)))
            case ["ended", status]:
                self.returncode = int(status)
            case _:
                self._end_after_the_start_process()
        return True

    def _take(self, pid: int, descriptors: Sequence[int], spawn_reason: str) -> None:
        if not descriptors:  # the kernel could not pass it
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        self.pid = pid
        self.spawned_because = spawn_reason
        (self._pidfd,) = descriptors

    def _end_after_the_start_process(self) -> None:
        """Make sure that the process has ended, which the kernel kills together with the start process."""
        if self.pid:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            wait([self._pidfd], _KILL_S)
        self.returncode = -signal.SIGKILL


class StartProcess:
    """The start process of this machine. It starts with this object, and ends when this object or this process ends."""

    def __init__(self, entry: str, *, has_torch: bool = True) -> None:
        """`entry`: the module of the workers' entry point. Raises OSError if no process can be started.

        `has_torch`: whether it imports torch for its children; False for workers that only guard a command.
        """
        self.has_torch = has_torch
        self._requests, their_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # It inherits the mask, so signals that a terminal (Ctrl-C, hang-up) or timeout(1) (SIGTERM) sends to the whole
        # group do not reach it.
        mask_before = signal.pthread_sigmask(signal.SIG_BLOCK, _SENT_TO_ALL)
        try:
            process = subprocess.Popen(
                child_command(_MODULE, str(their_socket.fileno()), entry, _MODULES[has_torch]),
                pass_fds=[their_socket.fileno()],
                env=child_environment(os.environ),
            )
        except OSError:
            self._requests.close()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask_before)
            their_socket.close()
        self._process = process
        self.close = weakref.finalize(self, _end, self._requests, process)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def start(self, name: str, function: str, words: Sequence[str], descriptors: Sequence[int] = ()) -> StartedProcess:
        """Request a process that calls `function` ("module:name") with `words` and `descriptors`; return at once.

        It has this process's environment, working directory, sys.path and signal mask. Raises ConnectionError if the
        start process has ended, and OSError if no descriptor is free.
        """
        our_socket, their_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with (
                their_socket,
                _memory_file(
                    {
                        "name": name,
                        "function": function,
                        "words": list(words),
                        "path": sys.path,
                        "environment": child_environment(os.environ),
                        "folder": str(Path.cwd()),
                        "blocked": sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ()))),
                    }
                ) as request,
            ):
                socket.send_fds(self._requests, [b"\0"], [their_socket.fileno(), request, *descriptors])
        except OSError:
            our_socket.close()
            raise
        return StartedProcess(our_socket)


@contextmanager
def _memory_file(request: dict[str, object]) -> Iterator[int]:
    """Yield the descriptor of a file in memory that has the request; a message would limit the environment's size."""
    file = os.memfd_create("request")
    try:
        os.write(file, json.dumps(request).encode())
        yield file
    finally:
        os.close(file)


def _end(requests: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End the start process, and with it everything that it has started."""
    requests.close()
    try:
        process.wait(_KILL_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
