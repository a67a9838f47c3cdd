"""Child processes that end with this one, as a program of its own: of one program, or of the workers of a node.

- `supervisor.py WORD …` guards a program: it runs as long as the process that holds this one's stdin lives, and not
  longer. Whatever ends first, the program or that process, even by SIGKILL: nothing that the program started is left,
  in whatever session it is; what loses its parent falls to the guard. The exit status is the program's, 128 plus the
  signal that ended it, or 127 when it could not be started.
- `supervisor.py` supervises a node: it starts workers and says what becomes of them, by lines of JSON on its standard
  streams. It ends when its input does, and the kernel ends its workers. In a cluster of Ray an actor does the same
  (`esper_ab/launchers/_ray_actor.py`), and gets `Supervisor` by value.

It runs beside every worker and must stay small: it imports the standard library, and psutil where it is needed.
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

ORPHANED = 70  # exit status of a process that ends because the one that it works for has
NOT_STARTED = 126  # status of a worker whose process could not be started, as a shell has it
_NO_PROGRAM = 127
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_COMPLAINT_BYTES = 64 << 10  # that are kept of standard error: the last ones
_READ_BYTES = 64 << 10
_TICK_S, _GAP_S = 1.0, 5.0


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process as soon as the thread that started it, of process `parent`, has ended.

    Only on Linux. It works whatever this process is doing, also while it is stopped.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before prctl took effect
            os._exit(ORPHANED)


def guard(words: Sequence[str]) -> int:
    """Run the program until it ends or stdin does; then end whatever it has left behind."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # orphans fall to this process, not to the machine's first
    try:
        program = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=partial(end_with_parent, os.getpid())
        )
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NO_PROGRAM
    threading.Thread(target=_kill_at_the_end_of_stdin, args=(os.pidfd_open(program.pid),), daemon=True).start()
    pid = status = 0
    while pid != program.pid:  # orphans that end are reaped meanwhile
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
    """Kill and reap until no child is left: every descendant is a child at last, when those between have ended."""
    import psutil  # here: a worker, which imports this module, needs none

    with suppress(ChildProcessError):
        while True:
            left = psutil.Process().children(recursive=True)
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            os.waitpid(-1, 0 if left else os.WNOHANG)


def times(guarding: int) -> dict[int, tuple[float, ...]]:
    """Return the processor times of a guard and its descendants, by process."""
    import psutil  # here: see above

    found = {}
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(guarding), *psutil.Process(guarding).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found[process.pid] = tuple(process.cpu_times())
    return found


def end_of(file: int) -> bytes:
    """Return the last bytes of what was written to a file that is open."""
    return os.pread(file, _COMPLAINT_BYTES, max(0, os.fstat(file).st_size - _COMPLAINT_BYTES))


class Supervisor:
    """Starts workers in `folder` and says what becomes of them, in lines.

    They are lists: ["said", name, LINE], the first one of a worker's output, and ["ended", name, STATUS, COMPLAINT],
    its status as `subprocess` has it and the end of its standard error; or NOT_STARTED and why.
    """

    def __init__(self, folder: str, say: Callable[[bytes], object]) -> None:
        self._folder, self._say = folder, say
        self._workers: dict[str, subprocess.Popen[bytes]] = {}

    def do(self, message: Any) -> None:
        """Carry out one order; ignore it if its worker is not running.

        Always on one thread that lives as long as this process: the kernel ends children with the thread that started
        them.
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
        with suppress(OSError, ValueError):  # it has ended, which shows by its status
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
    """Do what the lines on stdin say, until it ends.

    Stacks that were asked for before this process stood still, alone or with its machine, are of workers that were
    given up meanwhile: they may not write into logs any more.
    """
    supervisor = Supervisor(str(Path.cwd()), _print)
    ticked, stood_still, rest = time.monotonic(), -math.inf, b""
    while True:
        ready, _, _ = select.select([0], [], [], _TICK_S)
        now = time.monotonic()
        if now - ticked > _GAP_S:
            stood_still = now
        ticked = now  # and not after the messages are done: it may stand still while it does one
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
