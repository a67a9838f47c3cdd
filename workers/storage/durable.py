"""Atomic, durable files, and a run's checkpoints. After a kill, full disk or power cut, a file is complete or absent.

Each file is written to a temporary name, synced and renamed, and its folder is synced, so a reader sees the old bytes
or the new ones. Later damage is detected by a sha256 recorded elsewhere, because neither zip nor torch notices a
flipped bit. A checkpoint is written before its milestone's record is sent, so a recorded episode never has to be rerun.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from esper_ab.contracts.checkpoint_files import file_of, is_file_of, remove_older
from esper_ab.contracts.files_below import write_below
from esper_ab.contracts.records import Checkpoint, RunRef
from esper_ab.contracts.regular_file import open_to_read

# Exceptions that a session raises when it resumes from bytes that are no checkpoint of its run, whatever reads them.
FOREIGN = (
    pickle.UnpicklingError,
    RuntimeError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    MemoryError,
    msgspec.MsgspecError,
)


class Damaged(ValueError):
    """A file differs from its record. The message is a phrase without the file's name."""


def write(root: Path, name: str, data: bytes) -> str:
    """Write `data` durably to `name` below `root`; return its sha256. After an OSError, a previous file is unchanged.

    Each file may have only one writer at a time: leftovers of a killed writer are removed here.
    """
    write_below(root, name, data, synced=True)
    return hashlib.sha256(data).hexdigest()


def read(path: Path, sha256: str, size_bytes: int) -> bytes:
    """Return the bytes at `path`; Damaged unless they match the recorded hash and size."""
    try:
        with open_to_read(path) as file:
            data = file.read(size_bytes + 1)  # bounded: one extra byte is enough to see that the file is too long
    except OSError as error:
        raise Damaged(f"cannot be read: {error.strerror}") from None
    if len(data) != size_bytes:
        count = f"{len(data)}" if len(data) < size_bytes else f"more than {size_bytes}"
        raise Damaged(f"has {count} bytes; {size_bytes} were recorded")
    actual = hashlib.sha256(data).hexdigest()
    if actual != sha256:
        raise Damaged(f"has sha256 {actual[:12]}…; {sha256[:12]}… was recorded")
    return data


def store(experiment_dir: Path, run: RunRef, milestone: int, data: bytes, writer: int = 1) -> Checkpoint:
    """Write a new checkpoint, then remove outdated ones. After an OSError, all earlier checkpoints are unchanged.

    `writer`: the writer number in the WorkerOrder.
    """
    file = file_of(run, milestone, writer)
    sha256 = write(experiment_dir, file, data)
    remove_older(experiment_dir, file)
    return Checkpoint(milestone=milestone, file=file, sha256=sha256, size_bytes=len(data))


def take_up(
    experiment_dir: Path, run: RunRef, checkpoints: tuple[Checkpoint, ...], resume: Callable[[bytes], None]
) -> tuple[int, tuple[str, ...]]:
    """Resume from the first intact one of `checkpoints` (newest first); `resume` raises Damaged for a broken one.

    Return the milestone of the restored run, or 0 if no checkpoint was intact, and a sentence for each damaged
    checkpoint.
    """
    damage_reports: list[str] = []
    for checkpoint in checkpoints:
        if is_file_of(run, checkpoint):
            file = checkpoint.file
        else:
            file = file_of(run, checkpoint.milestone)
        try:
            if file != checkpoint.file:
                expected_content = f"is the state file of run {run.name} after episode {checkpoint.milestone - 1}"
                raise Damaged(f"{expected_content}, not {checkpoint.file[:200]!r}")
            resume(read(experiment_dir / file, checkpoint.sha256, checkpoint.size_bytes))
        except Damaged as error:
            damage_reports.append(f"{file} {error}")
        else:
            return checkpoint.milestone, tuple(damage_reports)
    return 0, tuple(damage_reports)


def reason(error: Exception) -> str:
    """Return a description of a FOREIGN error in at most one line."""
    return " ".join(str(error).split()).partition(". ")[0][:200] or type(error).__name__
