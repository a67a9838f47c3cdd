"""`python guard.py WORD …`: run a program as long as the process that holds this one's stdin lives, and not longer.

It is started by a worker as the leader of a session of its own. Whatever ends first, the program or the worker, even by
SIGKILL: nothing that the program started is left, in whatever session it is; what loses its parent falls to the guard.
The exit status is the program's, 128 plus the signal that ended it, or 127 when it could not be started. It imports
only the standard library and psutil: it runs beside every worker and must stay small.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress

import psutil

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_NOT_STARTED = 127


def times(guard: int) -> dict[int, tuple[float, ...]]:
    """Return the processor times of a guard and its descendants, by process."""
    found = {}
    with suppress(psutil.NoSuchProcess):
        for process in (psutil.Process(guard), *psutil.Process(guard).children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                found[process.pid] = tuple(process.cpu_times())
    return found


def run(words: Sequence[str]) -> int:
    """Run the program until it ends or stdin does; then end whatever it has left behind."""
    guard, libc = os.getpid(), ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # orphans fall to this process, not to that which the machine began with

    def end_with_guard() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(_NOT_STARTED)

    try:
        program = subprocess.Popen(words, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=end_with_guard)
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return _NOT_STARTED

    def reap_ended(*_: object) -> None:
        while program.returncode is None and _reap(program, os.WNOHANG):
            pass

    ends = select.poll()
    ends.register(os.pidfd_open(program.pid), select.POLLIN)
    ends.register(0, select.POLLIN)
    signal.signal(signal.SIGCHLD, reap_ended)
    reap_ended()  # those that have ended before
    ends.poll()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _end_descendants(program)
    status = program.wait()
    return status if status >= 0 else 128 - status


def _end_descendants(program: subprocess.Popen[bytes]) -> None:
    """Kill and reap until no child is left: every descendant is a child at last, when those between have ended."""
    with suppress(ChildProcessError):
        while True:
            left = psutil.Process().children(recursive=True)
            for process in left:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            _reap(program, 0 if left else os.WNOHANG)


def _reap(program: subprocess.Popen[bytes], options: int) -> bool:
    """Reap a child that has ended, the program or an orphan; False where none has, ChildProcessError without any."""
    ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | options)
    if ended is None:
        return False
    if ended.si_pid == program.pid:
        program.wait()
    else:
        os.waitpid(ended.si_pid, 0)
    return True


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
