"""Atomic, durable files: complete or absent, through a kill, a full disk and a power cut; a run's checkpoints.

Written to a temporary file, synced, renamed, and the folder synced: a reader sees the old bytes or the new ones. Later
damage is detected by a sha256 recorded elsewhere, because neither zip nor torch notices a flipped bit. A checkpoint is
written before the record of its milestone is sent, so a recorded episode never has to be run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from esper_ab.contracts.experiment_files import file_of, is_file_of, remove_older
from esper_ab.contracts.files import open_to_read, write_below
from esper_ab.contracts.records import Checkpoint, RunRef


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


def store(experiment_dir: Path, run: RunRef, milestone: int, data: bytes, writer: int = 1) -> Checkpoint:
    """Write a generation, then remove those that are too old. OSError leaves all previous ones unchanged.

    `writer`: that of the worker's order.
    """
    file = file_of(run, milestone, writer)
    sha256 = write(experiment_dir, file, data)
    remove_older(experiment_dir, file)
    return Checkpoint(milestone=milestone, file=file, sha256=sha256, size_bytes=len(data))


def take_up(
    experiment_dir: Path, run: RunRef, offered: tuple[Checkpoint, ...], resume: Callable[[bytes], None]
) -> tuple[int, tuple[str, ...]]:
    """Pass the first intact checkpoint of `offered` (newest first) to `resume`, which may raise Damaged.

    Returns the milestone of the restored run, 0 when no checkpoint was intact, and one sentence per damaged one.
    """
    damaged: list[str] = []
    for checkpoint in offered:
        file = checkpoint.file if is_file_of(run, checkpoint) else file_of(run, checkpoint.milestone)
        try:
            if file != checkpoint.file:
                where = f"is where run {run.name} keeps its state after episode {checkpoint.milestone - 1}"
                raise Damaged(f"{where}, not {checkpoint.file[:200]!r}")
            resume(read(experiment_dir / file, checkpoint.sha256, checkpoint.size_bytes))
        except Damaged as error:
            damaged.append(f"{file} {error}")
        else:
            return checkpoint.milestone, tuple(damaged)
    return 0, tuple(damaged)
