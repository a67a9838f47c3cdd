"""Who may connect over TCP: one CURVE key pair per worker incarnation, and the guard that checks it."""

from __future__ import annotations

import threading

import zmq
from zmq.utils import z85

DOMAIN = b"esper"
_GUARD_ENDPOINT = "inproc://zeromq.zap.01"  # where libzmq looks for it
_VERSION = b"1.0"


class Keys:
    """The key pair of one hub, and the public keys of its workers."""

    def __init__(self) -> None:
        self._owners: dict[bytes, str] = {}  # public key, 32 bytes -> identity
        self._of_worker: dict[str, bytes] = {}  # worker -> public key of its latest incarnation
        self.public, self.secret = zmq.curve_keypair()

    def register(self, identity: str, public_key_text: str) -> None:
        """Admit a worker by its public key (Z85 text); keys of its earlier incarnations are revoked."""
        self.withdraw(identity)
        key = self._of_worker[worker_of(identity)] = z85.decode(public_key_text)
        self._owners[key] = identity

    def withdraw(self, identity: str) -> None:
        """Revoke the key of this worker, whichever incarnation it belongs to."""
        self._owners.pop(self._of_worker.pop(worker_of(identity), b""), None)

    def owner(self, public_key_bytes: bytes) -> str | None:
        """Return the identity that owns a public key (32 bytes); None if no worker does."""
        return self._owners.get(public_key_bytes)


def worker_of(identity: str) -> str:
    """Return the worker that `identity` is an incarnation of."""
    return identity.partition("/")[0]


class Guard:
    """Answers libzmq's handshake requests: admits only the owners of `keys`, under their identities.

    It runs on its own thread until the context ends, so that a handshake need not wait for the coordinator.
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
        """Return the ZAP reply: version, request number, status, text, the peer's identity, and no metadata."""
        _, number, domain, _, _, mechanism, *credentials = request
        is_expected = (domain, mechanism, len(credentials)) == (DOMAIN, b"CURVE", 1)
        owner = self._keys.owner(credentials[0]) if is_expected else None
        if owner is None:
            return [_VERSION, number, b"400", b"not a worker of this experiment", b"", b""]
        return [_VERSION, number, b"200", b"OK", owner.encode(), b""]
