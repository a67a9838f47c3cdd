"""Supervise child processes so that they end with this one; also a program, for one child or the workers of a node.

- `supervisor.py WORD …` guards one program for the process that holds the guard's stdin. When the program or the holder
  of stdin ends, even by SIGKILL, everything that was started by the program is killed, whatever its session, because
  orphans become children of the guard. The exit status is that of the program, 128 plus the number of the signal that
  killed it, or 127 if it could not be started.
- `supervisor.py` supervises a node: it starts workers and reports on them, with lines of JSON on its standard streams.
  When its input ends, it exits and its workers are killed by the kernel. In a Ray cluster, an actor
  (`esper_ab/launchers/_ray_actor.py`) does this instead; it receives the class `Supervisor` by value.

Every worker may have its own guard process, so this module must stay small: it imports only the standard library, and
psutil only if needed.
"""

from __future__ import annotations

import ctypes
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
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

ORPHANED = 70  # exit status of a process that exits because the process it works for has ended
NOT_STARTED = 126  # status of a worker whose process could not be started, as in a shell
_NO_PROGRAM = 127
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_COMPLAINT_BYTES = 64 << 10  # number of last bytes kept of standard error
_READ_BYTES = 64 << 10
_TICK_S, _GAP_S = 1.0, 5.0


def end_with_parent(parent: int) -> None:
    """Make the kernel kill this process when the thread of process `parent` that started this one ends.

    Linux only. This works whatever the process is doing, even while it is stopped.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before prctl took effect
            os._exit(ORPHANED)


def guard(words: Sequence[str]) -> int:
    """Run a program until it ends or stdin is closed, kill everything that it started, and return its exit status."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # orphans become children of this process, not of init
    try:
        program = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=partial(end_with_parent, os.getpid())
        )
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NO_PROGRAM
    threading.Thread(target=_kill_at_the_end_of_stdin, args=(os.pidfd_open(program.pid),), daemon=True).start()
    pid = status = 0
    while pid != program.pid:  # also reaps orphans
        pid, status = os.wait()
    program.returncode = os.waitstatus_to_exitcode(status)
    _end_descendants()
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def _kill_at_the_end_of_stdin(program: int) -> None:
    while os.read(0, _READ_BYTES):
        pass
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(program, signal.SIGKILL)


def _end_descendants() -> None:
    """Kill and reap children until none is left; a deeper descendant becomes a child when its own parent has ended."""
    import psutil  # imported here, because a worker, which imports this module, does not need it

    with suppress(ChildProcessError):
        while True:
            left = psutil.Process().children(recursive=True)
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            os.waitpid(-1, 0 if left else os.WNOHANG)


def times(guarding: int) -> dict[int, tuple[float, ...]]:
    """Return the CPU times of a guard and its descendants, by pid."""
    import psutil  # imported here, as above

    found = {}
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(guarding), *psutil.Process(guarding).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found[process.pid] = tuple(process.cpu_times())
    return found


def end_of(file: int) -> bytes:
    """Return the last _COMPLAINT_BYTES bytes of an open file."""
    return os.pread(file, _COMPLAINT_BYTES, max(0, os.fstat(file).st_size - _COMPLAINT_BYTES))


class Supervisor:
    """Starts workers in `folder` and reports on them.

    Each report is a line with a JSON list. ["said", name, LINE] has the first line of a worker's output. ["ended",
    name, STATUS, COMPLAINT] has a worker's exit status, as in `subprocess`, and the end of its standard error. If the
    worker could not be started, STATUS is NOT_STARTED and COMPLAINT is the reason.
    """

    def __init__(self, folder: str, say: Callable[[bytes], object]) -> None:
        self._folder, self._say = folder, say
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
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaint, cwd=self._folder,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            self._tell("ended", name, NOT_STARTED, str(error))
            return
        self._workers[name] = worker
        threading.Thread(target=self._follow, args=(name, worker, complaint), daemon=True).start()
        self._write(worker, text)

    def _write(self, worker: subprocess.Popen[bytes], text: str) -> None:
        assert worker.stdin is not None, "a pipe"
        with suppress(OSError, ValueError):  # it has ended; its status will tell
            worker.stdin.write(text.encode())

    def _follow(self, name: str, worker: subprocess.Popen[bytes], complaint: BinaryIO) -> None:
        assert worker.stdout is not None, "a pipe"
        with worker, complaint:
            self._tell("said", name, worker.stdout.readline().decode(errors="replace").rstrip("\n"))
            status = worker.wait()
            self._tell("ended", name, status, end_of(complaint.fileno()).decode(errors="replace"))

    def _tell(self, *what: object) -> None:
        self._say(json.dumps(what).encode() + b"\n")


def supervise() -> NoReturn:
    """Carry out orders from stdin, one per line, until stdin is closed.

    A request for a stack trace that arrived before this process or its machine was suspended is ignored, because the
    worker has since been given up and must not write to the log.
    """
    supervisor = Supervisor(str(Path.cwd()), _print)
    ticked, stood_still, rest = time.monotonic(), -math.inf, b""
    while True:
        ready, _, _ = select.select([0], [], [], _TICK_S)
        now = time.monotonic()
        if now - ticked > _GAP_S:
            stood_still = now
        ticked = now  # not after the messages are handled, because a suspension may fall into that time
        if ready:
            part = os.read(0, _READ_BYTES)
            if not part:
                os._exit(ORPHANED)
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                match json.loads(line):
                    case ["signal", _, signal.SIGUSR1] if now - stood_still < _GAP_S:
                        pass
                    case message:
                        supervisor.do(message)


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]) if sys.argv[1:] else supervise())
