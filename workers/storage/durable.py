"""Atomic, durable files: complete or absent, through a kill, a full disk and a power cut.

Written to a temporary file, synced, renamed, and the folder synced: a reader sees the old bytes or the new ones. Later
damage is detected by a sha256 recorded elsewhere, because neither zip nor torch notices a flipped bit.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from esper_ab.contracts.below import write_below
from esper_ab.contracts.regular_file import open_to_read


class Damaged(ValueError):
    """A file differs from its record; the message is a phrase without the file's name."""


def write(root: Path, name: str, data: bytes) -> str:
    """Write `data` to `name` below `root` durably; return its sha256. OSError leaves a previous file unchanged.

    One writer per file at a time: leftovers of a killed one are removed here.
    """
    write_below(root, name, data, synced=True)
    return hashlib.sha256(data).hexdigest()


def read(path: Path, sha256: str, size_bytes: int) -> bytes:
    """Return the bytes at `path`; Damaged unless they match the recorded hash and size."""
    try:
        with open_to_read(path) as file:
            data = file.read(size_bytes + 1)  # bounded: one byte too many stands for any more
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror}") from None
    if len(data) != size_bytes:
        found = f"{len(data)}" if len(data) < size_bytes else f"more than {size_bytes}"
        raise Damaged(f"has {found} bytes where {size_bytes} were recorded")
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise Damaged(f"has the sha256 {found[:12]}… where {sha256[:12]}… was recorded")
    return data
