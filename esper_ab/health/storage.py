"""The folder of the experiment directories: file system, room, lock and fsync as the journal needs them."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from esper_ab.contracts.wording import significant
from esper_ab.health.diagnosis import Diagnosis, ok, problem, warning

_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\d?|smbfs|lustre|gpfs|beegfs|ceph|glusterfs|afs|orangefs|9p|virtiofs|fuse(blk)?(\..+)?"
)
_VOLATILE = ("tmpfs", "ramfs")
_SYNCS = 9
_SLOW_S = 0.05  # one fdatasync, which an experiment waits for once per record
_LITTLE_BYTES = 1 << 30


class Mount(NamedTuple):
    """A mounted file system, as psutil reports it."""

    mountpoint: str
    fstype: str
    opts: str  # by commas


def storage_diagnoses(out_folder: Path, needed_bytes: int) -> Iterator[Diagnosis]:
    """Check the folder `out_folder`, which may not exist yet; `needed_bytes`: space for the smallest experiment."""
    folder = next(folder for folder in (out_folder.absolute(), *out_folder.absolute().parents) if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield problem("run folder", f"{folder} is not a writable folder", "choose another with --output-dir")
        return
    mounts = [Mount(disk.mountpoint, disk.fstype, disk.opts) for disk in psutil.disk_partitions(all=True)]
    yield file_system(folder, mount_of(folder.resolve(), mounts))
    yield room(folder, needed_bytes)
    yield from _tried(folder)


def mount_of(folder: Path, mounts: Sequence[Mount]) -> Mount:
    """Return the mount that `folder` is on: the deepest mount point above the folder, or the last of several there."""
    mounts_above = [mount for mount in mounts if folder.is_relative_to(mount.mountpoint)][::-1]
    return max(mounts_above, key=lambda mount: len(mount.mountpoint), default=Mount("/", "unknown", ""))


def file_system(folder: Path, mount: Mount) -> Diagnosis:
    """Report whether the file system suits the journal's lock (flock) and its fdatasync after every record."""
    mount_words = f"{folder} is on {mount.fstype} ({mount.mountpoint})"
    options = set(mount.opts.split(","))
    if mount.fstype == "lustre" and not {"flock", "localflock"} & options:
        return problem(
            "file system",
            f"{mount_words}, mounted without flock, so the journal cannot be locked",
            "mount it with -o flock, or keep runs elsewhere with --output-dir",
        )
    local_lock = {"nolock", "local_lock=all", "local_lock=flock", "localflock"} & options
    if local_lock:
        return warning(
            "file system",
            f"{mount_words} with {sorted(local_lock)[0]}: other machines do not see the journal's lock",
            "start, resume and stop a run on one machine only",
        )
    if _NETWORK.fullmatch(mount.fstype):
        return warning(
            "file system",
            f"{mount_words}, on a network or in user space: a lock may outlive a machine that dies, and "
            "every fsync waits for the server",
            "prefer a local disk with --output-dir, and copy the finished experiment directory",
        )
    if mount.fstype in _VOLATILE:
        return warning("file system", f"{mount_words}, in memory: a restart deletes it", "use --output-dir")
    return ok("file system", f"{mount_words}, local")


def room(folder: Path, needed_bytes: int) -> Diagnosis:
    """Report the free space on the disk."""
    free_bytes = shutil.disk_usage(folder).free
    space_words = f"{free_bytes / 2**30:.1f} GiB free in {folder}"
    remedy = "free some space, `esper-ab tidy` finished runs, or choose another folder with --output-dir"
    if free_bytes < needed_bytes:
        return problem("disk", space_words, remedy)
    if free_bytes >= _LITTLE_BYTES:
        return ok("disk", space_words)
    return warning("disk", space_words, remedy)


def _tried(folder: Path) -> Iterator[Diagnosis]:
    """Lock, write and sync a temporary file as a journal does, then remove it."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".esper-doctor-") as file:
            yield _lock(file.fileno())
            yield sync_time(_sync_s(file.fileno()))
    except OSError as error:
        yield problem("run folder", f"cannot write a file in {folder}: {error.strerror}", "see --output-dir")


def _lock(descriptor: int) -> Diagnosis:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return problem("lock", f"flock fails: {error.strerror}", "keep runs on another file system with --output-dir")
    return ok("lock", "files can be locked")


def _sync_s(descriptor: int) -> list[float]:
    """Return the seconds that each of several fdatasyncs took after writing about one record."""
    sync_times = []
    for _ in range(_SYNCS):
        os.write(descriptor, b"x" * 4096)
        begin = time.perf_counter()
        getattr(os, "fdatasync", os.fsync)(descriptor)
        sync_times.append(time.perf_counter() - begin)
    return sync_times


def sync_time(sync_times: list[float]) -> Diagnosis:
    """Report the median and the longest time of an fdatasync."""
    median_s = statistics.median(sync_times)
    longest_s = max(sync_times)
    time_words = (
        f"median {significant(1e3 * median_s)} ms, worst {significant(1e3 * longest_s)} ms of {len(sync_times)}"
    )
    if median_s > _SLOW_S:
        return warning(
            "fsync", f"{time_words}; every record waits that long", "keep runs on a local disk with --output-dir"
        )
    return ok("fsync", time_words)
