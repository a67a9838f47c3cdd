"""Ends a worker whose connection is gone: with the coordinator on another machine, nothing else may tell of its end.

A thread reads what libzmq says of the socket. An open connection is no sign of life, because the kernel of a stopped
coordinator accepts connections; the end of a handshake is one, which needs an answer. Heartbeats of libzmq notice
when nobody has answered for 50 s.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import zmq
from zmq.utils.monitor import recv_monitor_message

from esper_ab.contracts.supervisor import ORPHANED

_POLL_MS = 1000
# A coordinator may stand still for 45 s. A connection that was given up before would be made anew while the ROUTER
# there still has the old one under the same name, and then ignores the new one for good.
UNANSWERED_MS = 50_000
_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_MONITOR_STOPPED
)  # fmt: skip


def _end(why: str) -> None:
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"the worker ends: {why}\n".encode())
    os._exit(ORPHANED)


class LinkWatch:
    """Watches `socket`, which has not connected yet, until `close`."""

    def __init__(
        self, socket: zmq.Socket[bytes], lost_after_s: float, beat_s: float, end: Callable[[str], None] = _end
    ) -> None:
        """`end` is called, in the thread, when there was no connection for `lost_after_s`, or it was refused."""
        socket.setsockopt(zmq.HEARTBEAT_IVL, int(beat_s * 1000))
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, UNANSWERED_MS)
        self._socket, self._lost_after_s, self._end = socket, lost_after_s, end
        self._monitor = socket.get_monitor_socket(_EVENTS)
        self._thread = threading.Thread(target=self._watch, name="link watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """To be called by the socket's owner, before it closes the socket."""
        self._socket.disable_monitor()
        self._thread.join()

    def _watch(self) -> None:
        lost_at: float | None = time.monotonic()
        with self._monitor:
            while True:
                event = self._event()
                if event == zmq.EVENT_MONITOR_STOPPED:
                    return
                if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                    self._end("the coordinator has another worker in its place")
                if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                    lost_at = None
                elif event == zmq.EVENT_DISCONNECTED and lost_at is None:
                    lost_at = time.monotonic()
                if lost_at is not None and time.monotonic() - lost_at > self._lost_after_s:
                    self._end(f"no connection to the coordinator for {self._lost_after_s:.0f} s")
                    lost_at = None  # read on: libzmq waits for whoever reads the end of its events

    def _event(self) -> int | None:
        """What has happened to the socket; None when nothing has for a second."""
        if not self._monitor.poll(_POLL_MS):
            return None
        return int(recv_monitor_message(self._monitor)["event"])
