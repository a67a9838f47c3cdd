"""CURVE keys of one worker's connection, each 40 characters of Z85, created only in the worker's own process.

Only public keys are sent: the coordinator's key is in the `WorkerOrder`, and the worker sends its own key to the
coordinator, which then admits the worker. The secret key is never put into an order, a file, a log or the environment,
because these may be copied to another machine.
"""

from __future__ import annotations

import re

import msgspec

KEY_CHARS = 40
_KEY = re.compile(rf"[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{{}}@%$#]{{{KEY_CHARS}}}")
_OWN: dict[str, LinkKeys] = {}  # keys of this process's workers, by identity, until they connect


class LinkKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The keys with which a worker and the coordinator authenticate each other."""

    server_public: str
    public: str
    secret: str

    def __repr__(self) -> str:
        """Return a text without the secret key, because the text may be printed."""
        return f"LinkKeys(public={self.public!r})"


def make(identity: str, server_public: str) -> LinkKeys:
    """Create a new key pair for the worker `identity` of this process, and store it until `take` is called."""
    import zmq  # imported here, because workers over ipc do not need it

    public_key_bytes, secret = zmq.curve_keypair()
    keys = _OWN[identity] = LinkKeys(
        server_public=server_public, public=public_key_bytes.decode(), secret=secret.decode()
    )
    return keys


def take(identity: str) -> LinkKeys | None:
    """Return the keys created for the worker `identity`, and delete them here; None if the worker needs no keys."""
    return _OWN.pop(identity, None)


def is_public_key(text: str) -> bool:
    """Whether `text` has the format of a key; a worker with a malformed key would wait forever."""
    return _KEY.fullmatch(text) is not None
