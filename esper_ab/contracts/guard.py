"""Run one program, and clean up after it: `guard.py INHERITED REPORT WORD …`.

INHERITED is what the program inherits: "UMASK;IGNORED;BLOCKED;LIMITS", numbers with commas between them. IGNORED and
BLOCKED are signals, and each of LIMITS is RLIMIT=SOFT (contracts/users_shell.py). REPORT is a descriptor, to which the
guard writes the peak memory of the largest process, in bytes, when the program has ended.

The guard works for the process that holds the other end of its stdin. When the program ends, or when that process ends,
even by SIGKILL, the guard kills everything that the program started. A new session is no escape, because orphans become
children of the guard. The exit status is that of the program, 128 plus the number of the signal that killed it, or 127
if it could not be started.

Every run of a user's command has its own guard, which takes longer to start than to do its work. So it runs without
site-packages and imports little: `subprocess` and `psutil` would treble its start.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import resource
import signal
import sys

ORPHANED = 70  # exit status of a process that exits because the process it works for has ended
NO_PROGRAM = 127  # exit status if the program could not be started
_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_READ_BYTES = 64 << 10


def end_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent ends. Linux only.

    `parent`: the parent's process id. The kernel sends SIGKILL when the thread that started this process ends, even if
    this process is busy or stopped at that time. If the parent has already ended, exit at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before prctl took effect
            os._exit(ORPHANED)


def limit_softly(number: int, soft_limit: int) -> None:
    """Set the soft limit RLIMIT_`number`; above this process's hard limit it becomes the hard limit."""
    hard_limit = resource.getrlimit(number)[1]
    limits = [limit for limit in (soft_limit, hard_limit) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(number, (min(limits, default=resource.RLIM_INFINITY), hard_limit))


def guard(inherited_words: str, report: int, words: list[str]) -> int:
    """Run a program until it ends or stdin is closed, kill everything that it started, and return its exit status."""
    os.set_inheritable(report, False)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # orphans become children of this process, not of init
    guard_pid = os.getpid()
    program = os.fork()
    if not program:
        _become(inherited_words, words, guard_pid)
    _thread.start_new_thread(_kill_at_the_end_of_stdin, (os.pidfd_open(program),))
    pid = status = 0
    while pid != program:  # also reaps orphans
        pid, status = os.wait()
    _end_descendants()
    _report(report)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _report(report: int) -> None:
    """Write the peak memory of the largest of this process's former children, in bytes."""
    peak_bytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    try:
        os.write(report, b"%d" % peak_bytes)
    except BrokenPipeError:  # the process that would read it has ended
        return


def _become(inherited_words: str, words: list[str], parent: int) -> None:
    """Replace this process, a forked child, by the program, in a new process group."""
    try:
        end_with_parent(parent)
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _inherit(*inherited_words.split(";"))
        os.execvp(words[0], words)
    except OSError as error:
        os.write(2, f"{words[0]}: {error.strerror}\n".encode(errors="surrogateescape"))
    os._exit(NO_PROGRAM)


def _inherit(umask: str, ignored_signals: str, blocked_signals: str, limits: str) -> None:
    """Set what the program inherits. Every other signal has its default: exec would keep those that Python ignores."""
    os.umask(int(umask))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN if str(int(number)) in ignored_signals.split(",") else signal.SIG_DFL)
    for limit in limits.split(","):
        kind, _, soft_limit = limit.partition("=")
        limit_softly(int(kind), int(soft_limit))
    signal.pthread_sigmask(signal.SIG_SETMASK, [int(number) for number in blocked_signals.split(",") if number])


def _kill_at_the_end_of_stdin(program: int) -> None:
    while os.read(0, _READ_BYTES):
        pass
    try:
        signal.pidfd_send_signal(program, signal.SIGKILL)
    except ProcessLookupError:
        return


def _end_descendants() -> None:
    """Kill and reap children until none is left; a deeper descendant becomes a child when its own parent has ended.

    A process of another user, as of root by `sudo`, cannot be killed, and is left.
    """
    spared_children: set[str] = set()
    try:
        while True:
            os.waitpid(-1, os.WNOHANG)
            children = [entry.name for entry in os.scandir("/proc") if _is_child(entry.name)]
            if spared_children and spared_children.issuperset(children):
                return
            for pid in set(children) - spared_children:
                if _kill(int(pid)):
                    os.waitpid(int(pid), 0)
                else:
                    spared_children.add(pid)
    except ChildProcessError:
        return


def _kill(pid: int) -> bool:
    """Kill a process; return False if it may not be killed."""
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        return False
    return True


def _is_child(name: str) -> bool:
    """True if `name` in /proc is a child of this process."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123  pathlib starts slowly
            return int(file.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except OSError:  # not a process, or it has ended
        return False


if __name__ == "__main__":
    os._exit(guard(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
