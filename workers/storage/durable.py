"""Atomic, durable files: complete or absent, through a kill, a full disk and a power cut.

Written to a temporary file, synced, renamed, and the folder synced: a reader sees the old bytes or the new ones. Later
damage is detected by a sha256 recorded elsewhere, because neither zip nor torch notices a flipped bit.
"""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path


class Damaged(ValueError):
    """A file differs from its record; the message is a phrase without the file's name."""


def write(path: Path, data: bytes) -> str:
    """Write `data` to `path` durably; return its sha256. OSError leaves a previous file unchanged and nothing else.

    One writer per path at a time: leftovers of a killed one are removed here.
    """
    _make_directory(path.parent)
    prefix = f".{path.name}."
    for leftover in [entry for entry in path.parent.iterdir() if entry.name.startswith(prefix)]:
        leftover.unlink(missing_ok=True)
    temporary = path.with_name(f"{prefix}{os.getpid()}-{threading.get_native_id()}")
    try:
        _write_synced(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)
    return hashlib.sha256(data).hexdigest()


def read(path: Path, sha256: str, size_bytes: int) -> bytes:
    """Return the bytes at `path`; Damaged unless they match the recorded hash and size."""
    try:
        with path.open("rb") as file:
            data = file.read(size_bytes + 1)  # bounded, whatever is there now
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror}") from None
    if len(data) != size_bytes:
        found = f"{len(data)}" if len(data) < size_bytes else f"more than {size_bytes}"
        raise Damaged(f"has {found} bytes where {size_bytes} were recorded")
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise Damaged(f"has the sha256 {found[:12]}… where {sha256[:12]}… was recorded")
    return data


def _write_synced(path: Path, data: bytes) -> None:
    """Write and sync a new file; loops because a full disk shortens a write without an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_directory(path: Path) -> None:
    """Create a folder durably with its parents; its name is durable once the folder above is synced."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    path.mkdir(exist_ok=True)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
