"""`python guard.py WORD …`: run a program as long as the process that holds this one's stdin lives, and not longer.

It is started by a worker as the leader of a session of its own. Whatever ends first, the program or the worker, even by
SIGKILL: nothing that the program started is left, in whatever session it is; what loses its parent falls to the guard.
The exit status is the program's, 128 plus the signal that ended it, or 127 when it could not be started. It imports
only the standard library: it runs beside every worker and must stay small.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_NOT_STARTED = 127


def members(guard: int) -> dict[int, int]:
    """Return a guard and its descendants that have not ended, and the processor time of each, in clock ticks."""
    children, ticks = defaultdict[int, list[int]](list), dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            children[int(fields[1])].append(int(entry.name))
            if fields[0] not in "ZX":
                ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    found = [guard]
    for pid in found:  # which grows
        found += children[pid]
    return {pid: ticks[pid] for pid in found if pid in ticks}


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
            left = members(os.getpid()).keys() - {os.getpid()}
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
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
