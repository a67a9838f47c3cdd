"""Key file of one worker's connection, written by the hub: CURVE keys, each 40 characters of Z85.

A worker's order names the file instead of holding the keys, because a launcher may log the order, pickle it, or put it
on a command line. Its second line is the sha256 of the first: with a damaged key a worker would wait for an answer to a
handshake until it is given up.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec


class KeyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Keys with which a worker authenticates itself and the coordinator."""

    server_public: str
    public: str
    secret: str

    def __repr__(self) -> str:
        """Omit the secret, because this may be printed."""
        return f"KeyFile(public={self.public!r})"


def write(path: Path, keys: KeyFile) -> None:
    """Create a file that only its owner may read; FileExistsError when it exists."""
    line = msgspec.json.encode(keys)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(line + b"\n" + _sum_of(line))


def read(path: Path) -> KeyFile:
    """Read a key file; OSError when it is missing, ValueError when it is none or damaged."""
    line, _, check = path.read_bytes().partition(b"\n")
    if check != _sum_of(line):
        raise ValueError(f"{path} is damaged: it does not have the keys that were written to it")
    return msgspec.json.decode(line, type=KeyFile)


def _sum_of(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest().encode()
