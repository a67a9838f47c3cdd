"""File descriptors of this process: how many it may have, how many a plan needs, and a reserve for essential work.

Over ipc, libzmq ends the process if no descriptor is free for a connection; over tcp, anyone who connects takes one.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import psutil

from esper_ab.contracts.errors import UsageError

RESERVE = 32  # not for connections: starting a worker takes 8 for a moment, and logs must stay readable
_OWN = 64  # what a coordinator needs besides its workers: about 20 itself, some for observers, and the reserve

# errno of a failed start of a process or thread -> what was missing; it may be free a little later.
PASSING = {
    errno.EMFILE: "no file descriptor was free (ulimit -n)",
    errno.ENFILE: "the system had no free file descriptor",
    errno.EAGAIN: "the limit on processes is reached (ulimit -u, pids.max)",
    errno.ENOMEM: "no memory was free",
    errno.EHOSTUNREACH: "no node had room for its worker",
}


def needed(workers: int, descriptors_per_worker: int, further_descriptors: int) -> int:
    """Return the largest number of descriptors that this process will have open, including those open now.

    `descriptors_per_worker`: descriptors per worker. `further_descriptors`: further descriptors, which the launcher
    needs.
    """
    return _count_open() + _OWN + further_descriptors + workers * descriptors_per_worker


def check(workers: int, descriptors_per_worker: int, further_descriptors: int) -> None:
    """Raise UsageError if this process may not open as many descriptors as `workers` workers need."""
    wanted_descriptors = needed(workers, descriptors_per_worker, further_descriptors)
    hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if wanted_descriptors > hard_limit:
        raise UsageError(
            f"{workers} workers need {wanted_descriptors} file descriptors, but this process may open {hard_limit}: "
            "raise the hard limit "
            f"(ulimit -Hn {wanted_descriptors}; for a service LimitNOFILE={wanted_descriptors}), or use fewer devices"
        )


def room_for(workers: int, descriptors_per_worker: int, further_descriptors: int) -> AbstractContextManager[None]:
    """Inside this context, raise the soft limit so that `workers` workers can start.

    The limit stays at least RESERVE below the hard limit. It is raised no further than needed, because connections
    from strangers could use up the rest.
    """
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _soft_limit(
        min(hard_limit - RESERVE, max(soft_limit, needed(workers, descriptors_per_worker, further_descriptors)))
    )


def reserve() -> AbstractContextManager[None]:
    """Inside this context, let this process use the RESERVE.

    Leave the context soon, because new connections can use up the reserve as well.
    """
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _soft_limit(min(hard_limit, soft_limit + RESERVE))


def require(free_descriptors: int) -> None:
    """Raise OSError (EMFILE) unless `free_descriptors` descriptors are free."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _count_open() < free_descriptors:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def _count_open() -> int:
    return psutil.Process().num_fds() - 1  # minus the one that lists them


@contextmanager
def _soft_limit(limit: int) -> Iterator[None]:
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft_limit, hard_limit))
