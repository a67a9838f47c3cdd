"""What programs inherit from the user's shell: environment, umask, signals and resource limits.

The coordinator and its workers change some of it for themselves: they raise limits, ignore and block signals, and set
variables while they start. A job's node may have other values from the start. So the coordinator records the state once
(`of_this_process`) and sends it with each WorkerOrder. A worker enters it, and gives it to the user's programs.
"""

from __future__ import annotations

import os
import resource
import signal
from contextvars import ContextVar
from pathlib import Path

import msgspec

from esper_ab.contracts.guard import limit_softly
from esper_ab.contracts.worker_order import UsersShell

# Python ignores these signals itself when it starts, so a user's own choice cannot be seen.
_OF_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
# Prefixes of variables that describe the process of a job on its node. They differ from those of the user's shell.
OF_A_JOB = ("SLURM", "SRUN_", "PMI", "RAY_")
_LIMITS = tuple(sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}))
_ENTERED: ContextVar[UsersShell] = ContextVar("the shell that this worker has entered")


def of_this_process() -> UsersShell:
    """Return the state of this process, which has not changed any of it since the user's shell started it."""
    ignored_signals = (number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN)
    return UsersShell(
        environment=_own_variables(),
        umask=_umask(),
        ignored=tuple(sorted(int(number) for number in ignored_signals if number not in _OF_PYTHON)),
        blocked=tuple(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))),
        soft_limits=tuple((number, resource.getrlimit(number)[0]) for number in _LIMITS),
    )


def current() -> UsersShell:
    """Return the shell that this worker has entered; for any other process, the state of the process."""
    return _ENTERED.get(None) or of_this_process()


def remember(shell: UsersShell | None) -> None:
    """Make `current` return `shell` from now on in this thread; None changes nothing."""
    if shell is not None:
        _ENTERED.set(shell)


def enter(shell: UsersShell | None) -> None:
    """Give this process the environment, umask, blocked signals and limits of `shell`; None changes nothing.

    Variables that describe the process of a job (`OF_A_JOB`) keep the values that they have here. A limit above this
    machine's hard limit becomes the hard limit. The signals that a worker ignores are its own decision.
    """
    if shell is None:
        return
    job_variables = {name: value for name, value in os.environ.items() if name.startswith(OF_A_JOB)}
    wanted_variables = shell.variables() | job_variables
    for name in os.environ.keys() - wanted_variables.keys():
        del os.environ[name]
    os.environ.update(wanted_variables)
    os.umask(shell.umask)
    signal.pthread_sigmask(signal.SIG_SETMASK, shell.blocked)
    for number, soft_limit in shell.soft_limits:
        limit_softly(number, soft_limit)
    remember(msgspec.structs.replace(shell, environment=_own_variables()))


def _own_variables() -> bytes:
    return b"".join(b"%s=%s\0" % entry for entry in os.environb.items())


def _umask() -> int:
    """Return the umask without changing it for an instant, as os.umask would, because other threads may write files."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))
