"""The coordinator's end of the wire: a ROUTER socket and one poller for messages, exits of workers and signals."""

from __future__ import annotations

import select
from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec
import zmq

from esper_ab.contracts.codec import ProtocolError, decode_from_worker, encode
from esper_ab.contracts.messages import CoordinatorMessage, WorkerMessage
from esper_ab.contracts.private_folder import private_folder, remove_private
from esper_ab.contracts.wire_limits import LARGEST_BYTES
from esper_ab.control.keys import DOMAIN, Guard, Keys, worker_of
from esper_ab.launchers import Transport

BAD_MESSAGES_TOLERATED = 3
BAD_MESSAGES_REPORTED = 20  # distinct messages, over all peers; further ones are only counted
_HANDSHAKE_MS = 10_000
_BEAT_S, _LONGEST_BEAT_S, _BEATS_PER_S = 2.0, 10.0, 500  # interval per connection, shortest and longest; total rate
_BEATS_MISSED = 5  # after this many, a connection counts as lost
_MESSAGES_PER_POLL = 1000
_AT_ONCE = int(zmq.NOBLOCK)


class Received(msgspec.Struct, frozen=True):
    """A message from an admitted worker."""

    identity: str
    message: WorkerMessage


class BadMessage(msgspec.Struct, frozen=True):
    """Bytes that are not a valid message, or that come from a stranger. `cut_off`: the peer is ignored from now on.

    `new`: this is one of the first distinct bad messages, which are reported; later ones are only counted.
    """

    identity: str
    reason: str
    known: bool
    cut_off: bool
    new: bool = True


class Readable(msgspec.Struct, frozen=True):
    """A watched descriptor has become readable."""

    descriptor: int


Incoming = Received | BadMessage | Readable


class Hub:
    """The coordinator's socket.

    It binds on construction. Its files are in a directory that only this user may enter.
    """

    def __init__(self, transport: Transport = "ipc", address: str = "127.0.0.1", peers: int = 1) -> None:
        """`address`: for tcp, the address of the interface to listen on, at any free port. `peers`: how many to expect.

        With many peers, both ends of every connection send heartbeats less often (`beat_s`).
        """
        self.beat_s = min(_LONGEST_BEAT_S, max(_BEAT_S, peers / _BEATS_PER_S))
        self._folder = private_folder()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        try:
            self._bind(transport, address)
        except BaseException:
            self._socket.close(0)
            self._context.term()
            remove_private(self._folder)
            raise
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._watched = select.epoll()  # a single descriptor for zmq, which scans its whole list at every poll
        self._poller.register(self._watched.fileno(), zmq.POLLIN)
        self._admitted: set[str] = set()
        self._newest: dict[str, str] = {}  # worker -> the incarnation that was admitted last
        self._bad: Counter[str] = Counter()
        self._reported: set[tuple[str, str]] = set()
        self.unreported = 0  # bad messages that were only counted

    def _bind(self, transport: Transport, address: str) -> None:
        self._keys = self._guarded() if transport == "tcp" else None
        patience_ms = int(_BEATS_MISSED * self.beat_s * 1000)
        self._set(
            {
                zmq.ROUTER_MANDATORY: 1,
                zmq.MAXMSGSIZE: LARGEST_BYTES,
                zmq.LINGER: 0,
                zmq.RCVHWM: 1000,
                zmq.SNDHWM: 1000,
                zmq.SNDTIMEO: 0,
                zmq.ZAP_DOMAIN: DOMAIN,  # refuses peers without a handshake, which ZMTP 1.0 allows
                zmq.HEARTBEAT_IVL: int(self.beat_s * 1000),
                zmq.HEARTBEAT_TIMEOUT: patience_ms,
                zmq.HEARTBEAT_TTL: patience_ms,
            }
        )
        self._socket.bind(f"ipc://{self._folder}/hub" if transport == "ipc" else f"tcp://{address}:*")
        self.endpoint = self._socket.get_string(zmq.LAST_ENDPOINT).rstrip("\0")

    def _guarded(self) -> Keys:
        """Require CURVE keys before the socket binds, so that no peer without a key can send a message."""
        keys = Keys()
        Guard(self._context, keys)
        self._set(
            {
                zmq.CURVE_SERVER: 1,
                zmq.CURVE_SECRETKEY: keys.secret,
                zmq.HANDSHAKE_IVL: _HANDSHAKE_MS,
                zmq.ZAP_ENFORCE_DOMAIN: 1,  # if the guard is missing, refuse all peers instead of admitting all
            }
        )
        return keys

    def _set(self, options: Mapping[int, int | bytes]) -> None:
        for option, value in options.items():
            self._socket.setsockopt(option, value)

    def admit(self, identity: str) -> str:
        """Accept messages from this worker from now on. Returns the hub's public key, or "" if no key is needed.

        When keys are needed, the worker can connect once its key is registered; keys of its predecessors are revoked.
        """
        worker = worker_of(identity)
        self._admitted.add(identity)
        self._newest[worker] = identity
        if self._keys is None:
            return ""
        self._keys.withdraw(identity)
        return self._keys.public.decode()

    def register(self, identity: str, public_key_text: str) -> None:
        """Admit the holder of this key as `identity`, unless a later incarnation has replaced it."""
        if self._keys is not None and self._newest.get(worker_of(identity)) == identity:
            self._keys.register(identity, public_key_text)

    def watch(self, descriptor: int, *, edge_triggered: bool = False) -> None:
        """Report `descriptor` as long as it is readable or its other end is closed.

        `edge_triggered`: report each write once; the data need not be read.
        """
        self._watched.register(descriptor, select.EPOLLIN | (select.EPOLLET if edge_triggered else 0))

    def unwatch(self, descriptor: int) -> None:
        self._watched.unregister(descriptor)

    def poll(self, timeout_s: float) -> Iterator[Incoming]:
        """Yield all arrived events, first messages and then descriptors; wait up to `timeout_s` for the first event.

        Messages are decoded one at a time, so a thousand messages need no more memory than one.
        """
        ready_sockets = dict(self._poller.poll(int(timeout_s * 1000)))
        if self._socket in ready_sockets:
            yield from self._messages()
        if self._watched.fileno() in ready_sockets:
            yield from [Readable(descriptor) for descriptor, _ in self._watched.poll(0)]

    def send(self, identity: str, message: CoordinatorMessage) -> bool:
        """Send a message. Returns False if the worker is not connected; the worker's sentinel will report its end."""
        try:
            self._socket.send(identity.encode(), zmq.SNDMORE)  # a missing peer makes this frame fail, not the next
            self._socket.send(encode(message))
        except zmq.ZMQError as error:
            if error.errno in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                return False
            raise
        return True

    def close(self) -> None:
        self._watched.close()
        self._socket.close(0)
        self._context.term()
        remove_private(self._folder)

    def _messages(self) -> Iterator[Received | BadMessage]:
        """Yield a limited number of messages, so that a flood cannot hide signals and exits."""
        for _ in range(_MESSAGES_PER_POLL):
            try:
                frames = self._socket.recv_multipart(_AT_ONCE, copy=False)
            except zmq.Again:
                break
            if (message := self._understood(frames)) is not None:
                yield message

    def _understood(self, frames: list[zmq.Frame]) -> Received | BadMessage | None:
        """Decode a message. Returns None if the peer is cut off, or if a stranger repeats an earlier message."""
        claimed_identity = frames[0].bytes.decode(errors="backslashreplace")
        identity = str(frames[-1].get("User-Id")) if self._keys else claimed_identity
        if identity not in self._admitted:
            return self._bad_message(identity, "not a worker of this experiment", from_worker=False)
        if self._bad[identity] > BAD_MESSAGES_TOLERATED:
            self.unreported += 1
            return None
        try:
            if claimed_identity != identity:
                raise ProtocolError(f"calls itself {claimed_identity[:100]!r}")
            if len(frames) != 2:
                raise ProtocolError(f"{len(frames) - 1} parts instead of one")
            message = decode_from_worker(frames[1].bytes)
        except ProtocolError as error:
            return self._bad_message(identity, str(error), from_worker=True)
        return Received(identity, message)

    def _bad_message(self, identity: str, reason: str, *, from_worker: bool) -> BadMessage | None:
        """Report each bad message from an admitted peer until the peer is cut off, but only new ones from strangers."""
        self._bad.update([identity] if from_worker else [])
        new = (identity, reason) not in self._reported and len(self._reported) < BAD_MESSAGES_REPORTED
        if new:
            self._reported.add((identity, reason))
        else:
            self.unreported += 1
        if not (new or from_worker):
            return None
        cut_off = not from_worker or self._bad[identity] > BAD_MESSAGES_TOLERATED
        return BadMessage(identity, reason, known=from_worker, cut_off=cut_off, new=new)
