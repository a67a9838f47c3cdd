"""The keys of one worker's connection, as the hub leaves them in a file for it: CURVE, each key 40 characters of Z85.

The order of a worker names the file and does not hold the keys: an order may be logged, pickled, or put on a command
line by a launcher.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec


class KeyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker needs to prove who it is, and to know whom it talks to."""

    server_public: str
    public: str
    secret: str

    def __repr__(self) -> str:
        """Without the secret: this may be printed."""
        return f"KeyFile(public={self.public!r})"


def write(path: Path, keys: KeyFile) -> None:
    """A new file that only its owner may read; FileExistsError when there is one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(keys))


def read(path: Path) -> KeyFile:
    """OSError when there is no such file, msgspec.ValidationError when it is another one."""
    return msgspec.json.decode(path.read_bytes(), type=KeyFile)
