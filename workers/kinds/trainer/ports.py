"""A free TCP port for a command's `{port}`, reserved on this machine while the command runs.

A port is claimed by binding an abstract Unix socket of the same number: every process in this network namespace sees
the claim, and the kernel drops it when its owner ends. So no two runs get the same port at the same time, although the
command binds its port only later. The ports lie below the range from which Linux gives ports to connections.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from esper_ab.contracts.trainer import PORT, placeholders

PORTS = range(20_000, 32_768)
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)  # a machine without IPv6


@contextmanager
def claimed(command: str) -> Iterator[dict[str, int]]:
    """Yield the value of `{port}` for a run of `command`; {} if the command does not use it.

    Raises ValueError if no port is free.
    """
    if PORT not in placeholders(command):
        yield {}
        return
    with socket.socket(socket.AF_UNIX) as claim:
        yield {PORT: _claim(claim)}


def _claim(claim: socket.socket) -> int:
    """Bind `claim` to the number of a free port, and return that port."""
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        if not _is_free(port):
            continue
        try:
            claim.bind(f"\0esper-ab-port-{port}")
        except OSError:  # another run has it
            continue
        return port
    raise ValueError(f"no port from {PORTS[0]} to {PORTS[-1]} is free for {{{PORT}}}")


def _is_free(port: int) -> bool:
    """Whether a program could listen at the port, on all addresses of IPv4 and, where there is one, of IPv6."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            with socket.socket(family) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(("", port))
        except OSError as error:
            if family == socket.AF_INET6 and error.errno in _NO_IPV6:
                continue
            return False
    return True
