"""Program that supervises the workers of one node.

It starts workers and reports on them. Orders and reports are lines of JSON on stdin and stdout. When stdin is closed,
the program exits, and the kernel kills its workers. In a Ray cluster, an actor (`esper_ab/launchers/_ray_actor.py`)
does this instead; it receives the class `Supervisor` by value. The program runs without site-packages, so this module
imports only the standard library.
"""

from __future__ import annotations

import json
import math
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

ORPHANED = 70  # exit status after the end of input, as in guard.py, which this program cannot import
NOT_STARTED = 126  # status of a worker whose process could not be started, as in a shell
_COMPLAINT_BYTES = 64 << 10  # number of last bytes kept of standard error
_READ_BYTES = 64 << 10
_TICK_S = 1.0
_GAP_S = 5.0


def read_end(file: int) -> bytes:
    """Return the last _COMPLAINT_BYTES bytes of an open file."""
    return os.pread(file, _COMPLAINT_BYTES, max(0, os.fstat(file).st_size - _COMPLAINT_BYTES))


class Supervisor:
    """Starts workers in `folder` and reports on them.

    Each report is a line with a JSON list. ["said", name, LINE] has the first line of a worker's output. ["ended",
    name, STATUS, COMPLAINT] has a worker's exit status, as in `subprocess`, and the end of its standard error. If the
    worker could not be started, STATUS is NOT_STARTED and COMPLAINT is the reason.
    """

    def __init__(self, folder: str, say: Callable[[bytes], object]) -> None:
        self._folder = folder
        self._say = say
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def do(self, message: Any) -> None:
        """Carry out one order, or ignore the order if its worker is not running.

        Always call this from one thread that lives as long as this process, because the kernel kills a child when the
        thread that started it ends.
        """
        match message:
            case ["begin", name, command, text]:
                self._begin(name, command, text)
            case ["write", name, text] if name in self._workers:
                self._write(self._workers[name], text)
            case ["signal", name, number] if name in self._workers:
                self._workers[name].send_signal(number)

    def _begin(self, name: str, command: Sequence[str], text: str) -> None:
        try:
            complaint = os.fdopen(os.memfd_create("complaint"), "rb")
            worker = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaint,
                cwd=self._folder,
                start_new_session=True,
            )
        except OSError as error:
            self._tell("ended", name, NOT_STARTED, str(error))
            return
        self._workers[name] = worker
        threading.Thread(target=self._follow, args=(name, worker, complaint), daemon=True).start()
        self._write(worker, text)

    def _write(self, worker: subprocess.Popen[bytes], text: str) -> None:
        assert worker.stdin is not None, "a pipe"
        with suppress(OSError, ValueError):  # the worker has ended; its exit status will tell
            worker.stdin.write(text.encode())

    def _follow(self, name: str, worker: subprocess.Popen[bytes], complaint: BinaryIO) -> None:
        assert worker.stdout is not None, "a pipe"
        with worker, complaint:
            self._tell("said", name, worker.stdout.readline().decode(errors="replace").rstrip("\n"))
            status = worker.wait()
            self._tell("ended", name, status, read_end(complaint.fileno()).decode(errors="replace"))

    def _tell(self, *report: object) -> None:
        self._say(json.dumps(report).encode() + b"\n")


def supervise() -> NoReturn:
    """Carry out orders from stdin, one per line, until stdin is closed.

    After a suspension of this process or its machine, requests for a stack trace are ignored for _GAP_S seconds. They
    may have been sent before the suspension, to a worker that has since been given up and must not write to the log.
    """
    supervisor = Supervisor(str(Path.cwd()), _print)
    last_tick_s = time.monotonic()
    stood_still = -math.inf
    unread_bytes = b""
    while True:
        ready_inputs, _, _ = select.select([0], [], [], _TICK_S)
        now_s = time.monotonic()
        if now_s - last_tick_s > _GAP_S:
            stood_still = now_s
        last_tick_s = now_s  # not after handling the messages, because a suspension in that time must be noticed, too
        if ready_inputs:
            part = os.read(0, _READ_BYTES)
            if not part:
                os._exit(ORPHANED)
            *lines, unread_bytes = (unread_bytes + part).split(b"\n")
            for line in lines:
                match json.loads(line):
                    case ["signal", _, signal.SIGUSR1] if now_s - stood_still < _GAP_S:
                        pass
                    case message:
                        supervisor.do(message)


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    supervise()
