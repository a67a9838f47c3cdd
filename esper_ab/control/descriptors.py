"""What this process may have: file descriptors, and its share of a crowded machine."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import psutil

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.process_start import usable_cores

# --- descriptors -----------------------------------------------------------------------------------------------------
# File descriptors of this process: how many it may have, how many a plan takes, and a reserve for what must go on.
#
# libzmq ends the process when it finds none for a connection over ipc, and over tcp anybody who connects takes one.


RESERVE = 32  # kept back from connections, so that workers can be started and logs read: a start takes 8 for a moment
_OWN = 64  # of a coordinator beside its workers: it has about 20, and observers some; the reserve is among them

# Of an OSError when a process or thread is started: what was lacking, which may be there a little later.
PASSING = {
    errno.EMFILE: "no file descriptor was free (ulimit -n)", errno.ENFILE: "the system had no file descriptor free",
    errno.EAGAIN: "no process could be added (ulimit -u, pids.max)", errno.ENOMEM: "there was no memory",
    errno.EHOSTUNREACH: "no node had room for its worker",
}


def needed(workers: int, each: int, beside: int) -> int:
    """Descriptors that this process will have at most, with those it has already.

    `each`: of one worker; `beside`: of the launcher, beside its workers.
    """
    return _in_use() + _OWN + beside + workers * each


def check(workers: int, each: int, beside: int) -> None:
    """UsageError unless this process may have as many descriptors as so many workers take."""
    wanted, hard = needed(workers, each, beside), resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if wanted > hard:
        raise UsageError(
            f"{workers} workers need {wanted} file descriptors, and this process may have {hard}: raise the hard limit "
            f"(ulimit -Hn {wanted}; of a service LimitNOFILE={wanted}), or name fewer devices"
        )


def room_for(workers: int, each: int, beside: int) -> AbstractContextManager[None]:
    """While entered, the soft limit lets so many workers be started, and leaves the RESERVE of the hard one.

    It becomes no higher than is needed: what nobody needs, strangers' connections would take.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _soft_limit(min(hard - RESERVE, max(soft, needed(workers, each, beside))))


def reserve() -> AbstractContextManager[None]:
    """While entered, the RESERVE may be used, too. For an instant: whoever connects meanwhile may take of it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _soft_limit(min(hard, soft + RESERVE))


def require(free: int) -> None:
    """OSError (EMFILE) unless so many descriptors are free."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _in_use() < free:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _in_use() -> int:
    return psutil.Process().num_fds() - 1  # without that of the listing


@contextmanager
def _soft_limit(limit: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- crowding --------------------------------------------------------------------------------------------------------
# How crowded this machine is: limits on waiting that hold for a process alone are stretched by it.


def crowding(processes: int = 1) -> float:
    """How many times slower than alone a process may be now: those that want to run, per core; 1 at least.

    `processes`: about to be started, which the load average of the last minute does not know of yet.
    """
    return max(1.0, max(os.getloadavg()[0], processes) / usable_cores())
