"""The coordinator's end of the wire: a ROUTER socket and one poller for messages, ends of workers and signals.

Knows bytes, identities and descriptors; not what a message means for a run. One thread owns it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
import zmq

from esper_ab.contracts.codec import FRAME_LIMIT_BYTES, Assembler, ProtocolError, decode_from_worker, encode
from esper_ab.contracts.messages import Chunk, CoordinatorMessage, WorkerMessage

BAD_MESSAGES_TOLERATED = 3
_STRANGERS_REPORTED = 20
_MESSAGES_PER_POLL = 1000
_SHORT_TMP = 60  # characters; an ipc path holds 107 bytes


class Received(msgspec.Struct, frozen=True):
    """A message of an admitted worker."""

    identity: str
    message: WorkerMessage


class BadMessage(msgspec.Struct, frozen=True):
    """Bytes that are no message, or come from nobody we know. `cut_off`: this peer is not listened to any more."""

    identity: str
    reason: str
    known: bool
    cut_off: bool


class Readable(msgspec.Struct, frozen=True):
    """A watched descriptor has something to say."""

    descriptor: int


Incoming = Received | BadMessage | Readable


class Hub:
    """Binds on construction, in a private directory of its own: nobody else on the machine can connect."""

    def __init__(self) -> None:
        short = None if len(tempfile.gettempdir()) <= _SHORT_TMP else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="esper-", dir=short))  # made 0700
        self.endpoint = f"ipc://{self._folder}/hub"
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._socket.setsockopt(zmq.MAXMSGSIZE, FRAME_LIMIT_BYTES)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.RCVHWM, 1000)
        self._socket.setsockopt(zmq.SNDHWM, 1000)
        self._socket.setsockopt(zmq.SNDTIMEO, 0)
        self._socket.setsockopt(zmq.ZAP_DOMAIN, b"esper")  # refuses peers without a handshake, which ZMTP 1.0 allows
        self._socket.setsockopt(zmq.HEARTBEAT_IVL, 2000)
        self._socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 10000)
        self._socket.setsockopt(zmq.HEARTBEAT_TTL, 10000)
        self._socket.bind(self.endpoint)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._admitted: dict[str, Assembler] = {}
        self._bad: Counter[str] = Counter()
        self._strangers = 0

    def admit(self, identity: str) -> None:
        """Listen to this worker from now on; an earlier incarnation of it is not listened to."""
        self._admitted[identity] = Assembler()

    def dismiss(self, identity: str) -> None:
        """Listen no more."""
        self._admitted.pop(identity, None)

    def watch(self, descriptor: int) -> None:
        """Report it when `descriptor` becomes readable or its other end is closed."""
        self._poller.register(descriptor, zmq.POLLIN)

    def unwatch(self, descriptor: int) -> None:
        self._poller.unregister(descriptor)

    def poll(self, timeout_s: float) -> list[Incoming]:
        """What has come in, waiting up to `timeout_s` for the first: messages before the descriptors."""
        ready = dict(self._poller.poll(int(timeout_s * 1000)))
        incoming: list[Incoming] = []
        if self._socket in ready:
            incoming.extend(self._messages())
        incoming.extend(Readable(source) for source in ready if isinstance(source, int))
        return incoming

    def send(self, identity: str, message: CoordinatorMessage) -> bool:
        """False when the worker is not connected: it is gone or going, which its sentinel will tell."""
        try:
            self._socket.send_multipart([identity.encode(), encode(message)])
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False
            raise
        return True

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _messages(self) -> list[Received | BadMessage]:
        """Bounded, so that a flood of messages cannot keep signals and deaths from being seen."""
        found = []
        for _ in range(_MESSAGES_PER_POLL):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            one = self._understood(frames)
            if one is not None:
                found.append(one)
        return found

    def _understood(self, frames: list[bytes]) -> Received | BadMessage | None:
        """None for what needs no attention: a piece of a message, a peer cut off, the umpteenth stranger."""
        identity = frames[0].decode(errors="backslashreplace")
        if identity not in self._admitted:
            self._strangers += 1
            if self._strangers > _STRANGERS_REPORTED:
                return None
            return BadMessage(identity, "not a worker of this experiment", known=False, cut_off=True)
        if self._bad[identity] > BAD_MESSAGES_TOLERATED:
            return None
        try:
            message = self._message(identity, frames[1:])
        except ProtocolError as error:
            self._bad[identity] += 1
            cut_off = self._bad[identity] > BAD_MESSAGES_TOLERATED
            return BadMessage(identity, str(error), known=True, cut_off=cut_off)
        return None if message is None else Received(identity, message)

    def _message(self, identity: str, parts: list[bytes]) -> WorkerMessage | None:
        if len(parts) != 1:
            raise ProtocolError(f"{len(parts)} parts instead of one")
        message = decode_from_worker(parts[0])
        return self._admitted[identity].add(message) if isinstance(message, Chunk) else message
