"""The worker's connection: a DEALER socket for typed messages that resends reports until they are acknowledged.

A successful send in ZeroMQ does not mean delivery. The reports of a run (Ready, EpisodeFinished, Evaluated) are
therefore kept, and resent until the Release of their milestone arrives. The coordinator drops repeated reports; if it
has already released their milestone, it sends the Release again. When a coordinator on another machine ends,
a lost connection may be the only sign. A watch therefore ends the worker when the connection is lost.
"""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import zmq

from esper_ab.contracts import messages
from esper_ab.contracts.codec import decode_from_coordinator, encode
from esper_ab.contracts.guard import ORPHANED
from esper_ab.contracts.link_keys import LinkKeys
from esper_ab.contracts.records import RunRef

_POLL_MS = 1000
# A coordinator may hang for 45 s. If a worker reconnected earlier, the ROUTER would still have its old connection under
# the same name, and would ignore the new one for good.
UNANSWERED_MS = 50_000
_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_DISCONNECTED | zmq.EVENT_MONITOR_STOPPED
)


def _end(reason: str) -> None:
    with suppress(OSError):
        os.write(sys.stderr.fileno(), f"the worker ends: {reason}\n".encode())
    os._exit(ORPHANED)


class LinkWatch:
    """Monitors the connection of `socket` in a thread, from before the socket connects until `close`."""

    def __init__(
        self, socket: zmq.Socket[bytes], lost_after_s: float, beat_s: float, end: Callable[[str], None] = _end
    ) -> None:
        """Start the thread; it calls `end` after `lost_after_s` without a connection, or if connecting is refused."""
        socket.setsockopt(zmq.HEARTBEAT_IVL, int(beat_s * 1000))
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, UNANSWERED_MS)
        self._socket = socket
        self._lost_after_s = lost_after_s
        self._end = end
        self._monitor = socket.get_monitor_socket(_EVENTS)
        self._thread = threading.Thread(target=self._watch, name="link watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop the thread; the socket's owner must call this before it closes the socket."""
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
                    lost_at = None  # keep reading: libzmq blocks until its last event is read

    def _event(self) -> int | None:
        """Return the next event of the socket; None if there was none for a second."""
        if not self._monitor.poll(_POLL_MS):
            return None
        event, _address = self._monitor.recv_multipart()
        return int.from_bytes(event[:2], sys.byteorder)  # as zmq.utils.monitor does, which imports asyncio


_STDERR = 2
_FORKED = 71  # exit status
_RESEND_AFTER_S = 30.0  # long, because a lockstep barrier takes as long as its slowest run
_SEND_TIMEOUT_S = 30.0
_LINGER_FINISHED_MS = 5000


class LinkLost(ConnectionError):
    """A send timed out, because the coordinator accepted no data.

    The time limit is 30 s or, if that is more, twice the limit of the LinkWatch. So the watch, if there is one, decides
    when the coordinator is lost.
    """


class Link:
    """The connection of one worker; only one thread may use it."""

    def __init__(
        self,
        endpoint: str,
        identity: str,
        resend_after_s: float = _RESEND_AFTER_S,
        keys: LinkKeys | None = None,
        lost_after_s: float = 0.0,
        beat_s: float = 2.0,
    ) -> None:
        """Connect. `keys`: the connection's keys, if the endpoint requires keys.

        `lost_after_s`: this process ends after this time without a connection; with 0, the process waits for ever.
        `beat_s`: time between the heartbeats that test the connection.
        """
        self._process = os.getpid()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        # A send times out later than the watch, so that the watch, if any, decides when the coordinator is lost.
        self._send_timeout_s = max(_SEND_TIMEOUT_S, 2 * lost_after_s)
        options: dict[int, int | bytes] = {
            zmq.IDENTITY: identity.encode(),
            zmq.LINGER: 0,
            zmq.SNDHWM: 64,
            zmq.IMMEDIATE: 1,
            zmq.RECONNECT_IVL: 100,
            zmq.RECONNECT_IVL_MAX: 5000,
            zmq.SNDTIMEO: int(self._send_timeout_s * 1000),
        }
        if keys is not None:
            options |= {
                zmq.CURVE_SERVERKEY: keys.server_public.encode(),
                zmq.CURVE_PUBLICKEY: keys.public.encode(),
                zmq.CURVE_SECRETKEY: keys.secret.encode(),
                zmq.TCP_KEEPALIVE: 1,
            }
        for option, value in options.items():
            self._socket.setsockopt(option, value)
        self._watch = LinkWatch(self._socket, lost_after_s, beat_s) if lost_after_s else None
        self._socket.connect(endpoint)
        self._resend_after_s = resend_after_s
        self.run: RunRef | None = None  # last assigned
        self._milestone = -1  # of the last report
        self._kept = b""  # a report until its release; the Hello until orders arrive
        self._hello = b""
        self._waiting: deque[messages.CoordinatorMessage] = deque()  # received by `cancelled`

    def send(self, message: messages.WorkerMessage) -> None:
        """Send one message; LinkLost after a timeout. A Progress that would have to wait is dropped.

        If user code forked this process and the child returned from that code, the child ends here.
        """
        self._end_forked_child()
        if isinstance(message, messages.Progress):
            with suppress(zmq.Again):
                self._socket.send(encode(message), zmq.NOBLOCK)
            return
        data = encode(message)
        if isinstance(message, messages.Ready | messages.EpisodeFinished | messages.Evaluated):
            self._milestone = self._milestone_of(message)
            self._kept = data
        elif isinstance(message, messages.Hello):
            self._hello = data
        self._send_all(data)

    def orders(self) -> messages.CoordinatorMessage | None:
        """Return the next message while no run is assigned.

        While waiting, it resends Hello every 30 s, because orders are lost when a connection breaks.
        """
        self._kept = self._hello
        self._milestone = -1
        return self.receive()

    def receive(self, timeout_s: float | None = None) -> messages.CoordinatorMessage | None:
        """Return the next message that is not a repeat, or None after `timeout_s`; ProtocolError if one is malformed.

        While waiting, it resends an unacknowledged report every 30 s.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        resend_at = time.monotonic() + self._resend_after_s
        while True:
            now_s = time.monotonic()
            if now_s >= resend_at:
                if self._kept:
                    self._send_all(self._kept)
                resend_at = now_s + self._resend_after_s
            wait_s = min(resend_at, deadline or math.inf) - now_s
            if self._waiting or self._socket.poll(max(0, int(wait_s * 1000) + 1)):
                if self._waiting:
                    message = self._waiting.popleft()
                else:
                    message = decode_from_coordinator(self._socket.recv())
                if isinstance(message, messages.Ping):
                    self.send(messages.Pong())
                elif self._is_new(message):
                    return message
            elif deadline is not None and time.monotonic() >= deadline:
                return None

    def cancelled(self) -> str | None:
        """Return why the coordinator cancelled the current run, or None. Does not block; other messages are kept."""
        while self._socket.poll(0):
            self._waiting.append(decode_from_coordinator(self._socket.recv()))
        for message in self._waiting:
            if isinstance(message, messages.Cancel) and self._is_mine(message.run_name):
                return message.reason
        return None

    def close(self, is_finished: bool) -> None:
        """Close the connection; if the worker `is_finished`, deliver pending messages first, otherwise drop them."""
        self._end_forked_child()
        if self._watch is not None:
            self._watch.close()
        self._socket.close(_LINGER_FINISHED_MS if is_finished else 0)
        self._context.term()

    def _end_forked_child(self) -> None:
        """End this process if it is a forked child of the one that connected.

        A second process of the same run would write to the run's files and would wait for ever at the parent's sockets.
        """
        if os.getpid() != self._process:
            with suppress(OSError):
                os.write(_STDERR, b"a process forked by user code came back from it: it ends here\n")
            os._exit(_FORKED)

    def _milestone_of(self, message: messages.Ready | messages.EpisodeFinished | messages.Evaluated) -> int:
        if isinstance(message, messages.Ready):
            return message.milestone
        if isinstance(message, messages.EpisodeFinished):
            return message.record.episode + 1
        return self._milestone + 1

    def _is_mine(self, run: str) -> bool:
        return self.run is not None and run == self.run.name

    def _is_new(self, message: messages.CoordinatorMessage) -> bool:
        """Record assignments and acknowledgements; return False for a repeat, sent in answer to a resent message."""
        if isinstance(message, messages.Assign) and self._is_mine(message.spec.ref.name):
            return False
        if isinstance(message, messages.Assign):
            self.run = message.spec.ref
            self._kept = b""
            self._milestone = -1
        if isinstance(message, messages.Cancel) and self._is_mine(message.run_name):
            self._kept = b""
        if not isinstance(message, messages.Release):
            return True
        if not self._kept or message.milestone != self._milestone or not self._is_mine(message.run_name):
            return False  # an answer to a report of an earlier run acknowledges nothing of this one
        self._kept = b""
        return True

    def _send_all(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except zmq.Again:
            raise LinkLost(f"the coordinator took nothing for {self._send_timeout_s:.0f} s") from None
