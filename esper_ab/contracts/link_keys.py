"""CURVE keys of one worker's connection, each 40 characters of Z85: made in the worker's process, and nowhere else.

Only public keys travel: the coordinator's in the worker's order, the worker's own to the coordinator, which admits it.
The secret is in no order, file, log or environment, because all of those may be on their way to another machine.
"""

from __future__ import annotations

import re

import msgspec

KEY_CHARS = 40
_KEY = re.compile(rf"[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{{}}@%$#]{{{KEY_CHARS}}}")
_OWN: dict[str, LinkKeys] = {}  # of the workers of this process, by identity, until they connect


class LinkKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Keys with which a worker authenticates itself and the coordinator."""

    server_public: str
    public: str
    secret: str

    def __repr__(self) -> str:
        """Omit the secret, because this may be printed."""
        return f"LinkKeys(public={self.public!r})"


def make(identity: str, server_public: str) -> LinkKeys:
    """A new pair for the worker `identity` of this process, kept until `take`."""
    import zmq  # here: whoever starts workers over ipc needs none

    public, secret = zmq.curve_keypair()
    keys = _OWN[identity] = LinkKeys(server_public=server_public, public=public.decode(), secret=secret.decode())
    return keys


def take(identity: str) -> LinkKeys | None:
    """The keys made for the worker `identity`, once; None where its connection needs none."""
    return _OWN.pop(identity, None)


def is_public_key(text: str) -> bool:
    """Whether this could be a key: damaged on its way it opens nothing, and its worker would wait in vain."""
    return _KEY.fullmatch(text) is not None
