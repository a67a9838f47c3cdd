"""EXPERIMENT/tracking: the trackers of an experiment, their progress and locks. Light; loads no tracker's library."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import Literal

import msgspec

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.files_below import open_below, write_below
from esper_ab.contracts.regular_file import open_regular, read_regular
from esper_ab.contracts.run_files import LOGS
from esper_ab.contracts.unreadable import UNREADABLE
from esper_ab.trackers.settings import Name, Tracking

FOLDER = "tracking"
_SETTINGS = "settings.json"
_TRIES = 5  # because `at_work` holds the lock for an instant
_TRY_S = 0.02


TrackerState = Literal["starting", "following", "done", "failed"]


class TrackerProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of one tracker."""

    state: TrackerState
    detail: str = ""  # of a failure, one line
    where: str = ""  # address for the user to open or give to the tool
    lines: int = 0  # journal lines passed on so far
    pid: int = 0  # of its latest process
    started: str = ""  # the process's STARTED argument, which tells it from an earlier one that is still ending


_decode_settings = msgspec.json.Decoder(Tracking).decode
_decode_progress = msgspec.json.Decoder(TrackerProgress).decode


def save_settings(experiment_dir: Path, tracking: Tracking) -> None:
    """Save the trackers' settings for later processes."""
    data = msgspec.json.format(msgspec.json.encode(tracking), indent=2) + b"\n"
    write_below(experiment_dir, f"{FOLDER}/{_SETTINGS}", data)


def read_settings(experiment_dir: Path) -> Tracking:
    """Read the trackers' settings; no trackers if none were saved. Raises UsageError if the file is invalid."""
    path = experiment_dir / FOLDER / _SETTINGS
    if not path.exists():
        return Tracking()
    try:
        return _decode_settings(read_regular(path))
    except UNREADABLE as error:
        raise UsageError(f"{path}: {error}; remove it to use no tracker") from None


def write_progress(experiment_dir: Path, name: Name, progress: TrackerProgress) -> None:
    """Write a tracker's progress file. Raises OSError if that fails."""
    write_below(experiment_dir, f"{FOLDER}/{name}.json", msgspec.json.encode(progress) + b"\n")


def read_progress(experiment_dir: Path, name: Name, start_id: str | None = None) -> TrackerProgress | None:
    """Read a tracker's progress file; None if it is missing, invalid, or not from the process that `start_id` marks."""
    try:
        progress = _decode_progress(read_regular(experiment_dir / FOLDER / f"{name}.json"))
    except (OSError, *UNREADABLE):
        return None
    return progress if start_id in (None, progress.started) else None


def take(experiment_dir: Path, name: Name) -> int | None:
    """Return a descriptor that holds the tracker's lock until it is closed; None if another process has the lock."""
    descriptor = open_below(experiment_dir, f"{FOLDER}/{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_TRY_S)
        else:
            return descriptor
    os.close(descriptor)
    return None


def at_work(experiment_dir: Path, name: Name) -> bool:
    """True if a process of the tracker holds its lock."""
    try:
        descriptor = open_regular(experiment_dir / FOLDER / f"{name}.lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def open_log(experiment_dir: Path, name: Name) -> int:
    """Return a descriptor that appends to the tracker's log, which `esper-ab logs EXPERIMENT tracker-NAME` shows."""
    return open_below(experiment_dir, f"{LOGS}/tracker-{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
