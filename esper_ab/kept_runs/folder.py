"""The folder of kept runs: DIR/ab/KEY-CONDITIONS.run, a file per run, which is replaced as a whole.

Readers and writers take no lock: a file is written under another name, synced and renamed, and a file that is removed
while it is read stays readable. Only those that remove files lock the folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from esper_ab.contracts.files_below import make_folder, remove_below, write_below
from esper_ab.contracts.regular_file import open_regular, read_regular
from esper_ab.contracts.unversioned import GITIGNORE, leave_unversioned
from esper_ab.kept_runs.entry import DamagedRun, KeptRun, decode, encode

LARGEST_BYTES = 64 << 20  # of a file; a larger run is not kept
_LOCK = ".lock"
_SUFFIX = ".run"
_OURS = re.compile(rf"[0-9a-f]{{2}}|{re.escape(_LOCK)}|{re.escape(GITIGNORE)}")  # names in the folder
_ABANDONED_S = 3600.0  # age of a draft whose writer was killed
_SHOWN_CHARS = 16  # of the hash of conditions


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """A file in the folder."""

    path: Path
    size_bytes: int
    used_at: float  # s since the epoch


def make_folder_of_runs(folder: Path) -> None:
    """Create the folder unless it exists, and let git ignore it if nothing else is in it; raises OSError."""
    make_folder(folder)
    if os.access(folder, os.W_OK) and all(_OURS.fullmatch(path.name) for path in folder.iterdir()):
        leave_unversioned(folder)


def is_folder_of_runs(folder: Path) -> bool:
    """Whether a folder has kept runs, or is what remains of one whose runs were removed."""
    names = [path.name for path in folder.iterdir()]
    return bool(stored_files(folder)) or (bool(names) and all(map(_OURS.fullmatch, names)))


def path_of(folder: Path, key: str, conditions: Mapping[str, str]) -> Path:
    """Return the file of a run that was trained under these conditions."""
    text = "\n".join(f"{name}={value}" for name, value in sorted(conditions.items()))
    return folder / key[:2] / f"{key}-{hashlib.sha256(text.encode()).hexdigest()[:_SHOWN_CHARS]}{_SUFFIX}"


def read_run(path: Path) -> tuple[KeptRun, bytes] | None:
    """Return the run of a file, and its policy; None if it is damaged, not readable or was just removed."""
    try:
        return decode(read_regular(path, LARGEST_BYTES))
    except (OSError, DamagedRun):
        return None


def find_runs(folder: Path, key: str) -> Iterator[tuple[KeptRun, bytes]]:
    """Yield the runs of this key, each trained under other conditions, and note that they are used."""
    for path in sorted((folder / key[:2]).glob(f"{key}-*{_SUFFIX}")):
        stored_run = read_run(path)
        if stored_run is not None and stored_run[0].key == key:
            with suppress(OSError):  # in a folder that may only be read
                os.utime(path)
            yield stored_run


def write_run(folder: Path, run: KeptRun, policy: bytes) -> bool:
    """Write a run, which replaces an earlier one of the same key and conditions; False if it is too large.

    Raises OSError; the folder is then as before.
    """
    data = encode(run, policy)
    if len(data) > LARGEST_BYTES:
        return False
    path = path_of(folder, run.key, run.conditions)
    write_below(folder, path.relative_to(folder), data, synced=True, sole_writer=False)
    return True


def stored_files(folder: Path) -> list[StoredFile]:
    """Return all files of runs, those used longest ago first."""
    files = []
    for path in folder.glob(f"[0-9a-f][0-9a-f]/*{_SUFFIX}"):
        with suppress(OSError):  # removed meanwhile
            status = path.lstat()
            files.append(StoredFile(path=path, size_bytes=status.st_size, used_at=status.st_mtime))
    return sorted(files, key=lambda file: (file.used_at, file.path.name))


def abandoned_drafts(folder: Path) -> list[Path]:
    """Return drafts whose writers were killed."""
    drafts = []
    for path in folder.glob("[0-9a-f][0-9a-f]/.*"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > _ABANDONED_S:
                drafts.append(path)
    return drafts


def evict(folder: Path, limit_bytes: int) -> list[StoredFile]:
    """Remove the runs used longest ago until the others have at most `limit_bytes`, and drafts of killed writers.

    Return what was removed. Raises OSError if the folder cannot be locked.
    """
    with locked(folder):
        for draft in abandoned_drafts(folder):
            remove_below(folder, draft.relative_to(folder))
        files = stored_files(folder)
        excess_bytes = sum(file.size_bytes for file in files) - limit_bytes
        removed_files = []
        for file in files:
            if excess_bytes <= 0:
                break
            remove_below(folder, file.path.relative_to(folder))
            excess_bytes -= file.size_bytes
            removed_files.append(file)
    return removed_files


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Inside this context, no other process removes files of the folder; waits until it may enter."""
    descriptor = open_regular(folder / _LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
