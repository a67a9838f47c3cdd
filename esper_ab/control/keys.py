"""Who may connect over TCP: one CURVE key pair per worker incarnation, and the guard that asks for it (ZeroMQ RFC 27).

A pair per incarnation, not one for all: a key then names its worker, so a worker cannot speak for another, and what
leaks with a dead one opens nothing. Each process makes its own pair, and no secret leaves the memory it was made in.
"""

from __future__ import annotations

import threading

import zmq
from zmq.utils import z85

DOMAIN = b"esper"
_GUARD_ENDPOINT = "inproc://zeromq.zap.01"  # where libzmq looks for it
_VERSION = b"1.0"


class Keys:
    """The pair of one hub, and the public keys of its workers."""

    def __init__(self) -> None:
        self._owners: dict[bytes, str] = {}  # public key, 32 bytes -> identity
        self._of_worker: dict[str, bytes] = {}  # worker -> public key of its last incarnation
        self.public, self.secret = zmq.curve_keypair()

    def register(self, identity: str, public: str) -> None:
        """The key of a worker; those of earlier incarnations open nothing from now on."""
        self.withdraw(identity)
        key = self._of_worker[worker_of(identity)] = z85.decode(public)
        self._owners[key] = identity

    def withdraw(self, identity: str) -> None:
        """No key of this worker opens anything, whichever incarnation it is of."""
        self._owners.pop(self._of_worker.pop(worker_of(identity), b""), None)

    def owner(self, public: bytes) -> str | None:
        """Whose key this is (32 bytes); None for anybody else's."""
        return self._owners.get(public)


def worker_of(identity: str) -> str:
    """Return the worker of which `identity` is an incarnation."""
    return identity.partition("/")[0]


class Guard:
    """Answers libzmq when somebody shakes hands: admits the owners of `keys` under their names, nobody else.

    A thread of its own, so that a handshake does not wait for the coordinator. It ends with the context.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keys: Keys) -> None:
        self._keys = keys
        self._socket = context.socket(zmq.REP)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.bind(_GUARD_ENDPOINT)
        self._thread = threading.Thread(target=self._serve, name="guard", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        try:
            while True:
                self._socket.send_multipart(self._answer(self._socket.recv_multipart()))
        except zmq.ContextTerminated:
            pass
        finally:
            self._socket.close(0)

    def _answer(self, request: list[bytes]) -> list[bytes]:
        """Version, number of the request, status, text, name of the peer, nothing more."""
        _, number, domain, _, _, mechanism, *credentials = request
        owner = None
        if (domain, mechanism, len(credentials)) == (DOMAIN, b"CURVE", 1):
            owner = self._keys.owner(credentials[0])
        if owner is None:
            return [_VERSION, number, b"400", b"not a worker of this experiment", b"", b""]
        return [_VERSION, number, b"200", b"OK", owner.encode(), b""]
