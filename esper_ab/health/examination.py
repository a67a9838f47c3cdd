"""Checks of `doctor`: limits of this process, packages, GPUs, and the folder for experiment directories."""

from __future__ import annotations

import fcntl
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import psutil

from esper_ab.contracts.children import Machine, is_beyond_one_instance
from esper_ab.contracts.wording import significant

# --- diagnosis -------------------------------------------------------------------------------------------------------
# One line of the doctor's report: the fact, whether an experiment tolerates it, and a remedy.


Severity = Literal["ok", "warning", "problem"]


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check. `problem`: a launch with the defaults fails here. `warning`: a launch works, at a cost."""

    topic: str
    level: Severity
    what: str
    remedy: str = ""  # one line; "" when none is needed


def ok(topic: str, what: str) -> Diagnosis:
    """Make a diagnosis that needs no action."""
    return Diagnosis(topic=topic, level="ok", what=what)


def warning(topic: str, what: str, remedy: str) -> Diagnosis:
    """Make a diagnosis of something that works, at a cost."""
    return Diagnosis(topic=topic, level="warning", what=what, remedy=remedy)


def problem(topic: str, what: str, remedy: str) -> Diagnosis:
    """Make a diagnosis of something that prevents a launch."""
    return Diagnosis(topic=topic, level="problem", what=what, remedy=remedy)


# --- system ----------------------------------------------------------------------------------------------------------
# Limits of this process, and packages.


_FEW_FILES, _FEW_PROCESSES = 1024, 256
_LEAST_BYTES = 3 << 29  # of address space: loading the libraries and training networks took 1.1 GB


def system_diagnoses() -> Iterator[Diagnosis]:
    """Check the limits of this process, which its workers inherit."""
    numbers = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS)
    yield from limits(*(resource.getrlimit(number)[0] for number in numbers))


def limits(files: int, processes: int, addresses: int) -> Iterator[Diagnosis]:
    """Check soft limits of setrlimit(2); -1 means no limit."""
    yield _limit("open files", files, _FEW_FILES, "ulimit -n 4096")
    yield _limit("processes", processes, _FEW_PROCESSES, "ulimit -u 4096")
    if 0 <= addresses < _LEAST_BYTES:
        yield problem(
            "limit of addresses", f"{addresses / 2**30:.2f} GiB; libraries alone need {_LEAST_BYTES / 2**30:.2f}",
            "ulimit -v unlimited",
        )


def _limit(topic: str, value: int, few: int, remedy: str) -> Diagnosis:
    what = "no limit" if value < 0 else f"at most {value}"
    return warning(topic, what, remedy) if 0 <= value < few else ok(topic, what)


def package_diagnoses(packages: Sequence[str]) -> Iterator[Diagnosis]:
    """Report the versions of Python and of those `packages` that are installed."""
    yield ok("python", f"{sys.version.split()[0]} at {sys.executable}")
    installed = [name for name in packages if [*distributions(name=name)]]
    yield ok("packages", ", ".join(f"{name} {version(name)}" for name in installed))


# --- devices ---------------------------------------------------------------------------------------------------------
# GPUs as seen by the driver and by torch. Texts of nvidia-smi and the preflight's answer in, diagnoses out.


_TIMEOUT_S = 20.0


class Driver(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of nvidia-smi; empty if there is none."""

    version: str = ""
    cuda: str = ""  # the newest CUDA it supports


def device_diagnoses(machine: Machine) -> Iterator[Diagnosis]:
    """Check the GPUs of this machine, or report that there are none."""
    yield from gpu_diagnoses(machine, ask_driver(), os.environ.get("CUDA_VISIBLE_DEVICES"))


def ask_driver() -> Driver:
    """Query the driver; the answer is empty if there is no driver."""
    try:
        done = subprocess.run(["nvidia-smi"], capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Driver()
    return parse_driver(done.stdout.decode(errors="replace"))


def parse_driver(screen: str) -> Driver:
    """Parse the plain output of nvidia-smi."""
    version, cuda = (re.search(rf"{what} Version:\s*([0-9.]+)", screen) for what in ("Driver", "CUDA"))
    return Driver(version=version[1] if version else "", cuda=cuda[1] if cuda else "")


def gpu_diagnoses(machine: Machine, driver: Driver, pool: str | None) -> Iterator[Diagnosis]:
    """Check GPUs against the driver and torch. `pool`: CUDA_VISIBLE_DEVICES, the devices an experiment may use."""
    gpus = [device for device in machine.devices if device.name.startswith("cuda:")]
    build = f"torch {machine.torch_version}, {f'CUDA {machine.cuda_build}' if machine.cuda_build else 'for the CPU'}"
    if machine.gpu_problem:
        mend = "install a torch build for this driver's CUDA"
        mend = "name a single instance" if is_beyond_one_instance(pool) else mend
        yield problem("gpu", machine.gpu_problem, f"{mend}, or use --devices cpu")
    elif gpus:
        yield ok("gpu", ", ".join(f"{gpu.name} {gpu.title} {gpu.memory_bytes / 2**30:.0f} GiB" for gpu in gpus))
    else:
        emptied = " (CUDA_VISIBLE_DEVICES is empty)" if pool in ("", "-1") else ""
        yield ok("gpu", f"none{emptied}: experiments run on CPU cores")
    if gpus and machine.unusable_gpus:
        yield warning("gpu", machine.unusable_gpus, "the others are used; choose GPUs with --devices")
    yield _against(build, machine.cuda_build, driver)
    if len({gpu.title for gpu in gpus}) > 1:
        yield warning("gpu", "different kinds of GPU", "choose one kind with --devices; devices are counterbalanced")
    if pool:
        yield ok("gpu pool", f"CUDA_VISIBLE_DEVICES={pool}")
    if any("MIG" in gpu.title for gpu in gpus):
        yield warning(
            "mig", "MIG is on: a process sees one instance, which torch counts as one GPU",
            "use one instance per experiment (CUDA_VISIBLE_DEVICES=MIG-… --placement share), or switch MIG off",
        )  # fmt: skip


def _against(build: str, cuda_build: str, driver: Driver) -> Diagnosis:
    """Check that the build's CUDA major version is not newer than the driver's; a newer minor version is compatible."""
    if not driver.version:
        return ok("torch", f"{build}; no NVIDIA driver")
    what = f"{build}; driver {driver.version}, {f'CUDA {driver.cuda} at most' if driver.cuda else 'CUDA unknown'}"
    if cuda_build and driver.cuda and int(cuda_build.split(".")[0]) > int(driver.cuda.split(".")[0]):
        return problem("torch", what, "update the driver, or install a torch build for an older CUDA")
    return ok("torch", what)


# --- storage ---------------------------------------------------------------------------------------------------------
# The folder of the experiment directories: file system, room, lock and fsync as the journal needs them.


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


def storage_diagnoses(out: Path, needed_bytes: int) -> Iterator[Diagnosis]:
    """Check the folder `out`, which may not exist yet; `needed_bytes`: space for the smallest experiment."""
    folder = next(one for one in (out.absolute(), *out.absolute().parents) if one.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        yield problem("run folder", f"{folder} is not a writable folder", "choose another with --output-dir")
        return
    mounts = [Mount(one.mountpoint, one.fstype, one.opts) for one in psutil.disk_partitions(all=True)]
    yield file_system(folder, mount_of(folder.resolve(), mounts))
    yield room(folder, needed_bytes)
    yield from _tried(folder)


def mount_of(folder: Path, mounts: Sequence[Mount]) -> Mount:
    """Return the mount that `folder` is on: the deepest mount point above the folder, or the last of several there."""
    above = [mount for mount in mounts if folder.is_relative_to(mount.mountpoint)][::-1]
    return max(above, key=lambda mount: len(mount.mountpoint), default=Mount("/", "unknown", ""))


def file_system(folder: Path, mount: Mount) -> Diagnosis:
    """Report whether the file system suits the journal's lock (flock) and its fdatasync after every record."""
    what, options = f"{folder} is on {mount.fstype} ({mount.mountpoint})", set(mount.opts.split(","))
    if mount.fstype == "lustre" and not {"flock", "localflock"} & options:
        return problem(
            "file system", f"{what}, mounted without flock, so the journal cannot be locked",
            "mount it with -o flock, or keep runs elsewhere with --output-dir",
        )  # fmt: skip
    local_lock = {"nolock", "local_lock=all", "local_lock=flock", "localflock"} & options
    if local_lock:
        return warning(
            "file system", f"{what} with {sorted(local_lock)[0]}: other machines do not see the journal's lock",
            "start, resume and stop a run on one machine only",
        )  # fmt: skip
    if _NETWORK.fullmatch(mount.fstype):
        return warning(
            "file system", f"{what}, on a network or in user space: a lock may outlive a machine that dies, and "
            "every fsync waits for the server",
            "prefer a local disk with --output-dir, and copy the finished experiment directory",
        )  # fmt: skip
    if mount.fstype in _VOLATILE:
        return warning("file system", f"{what}, in memory: a restart deletes it", "use --output-dir")
    return ok("file system", f"{what}, local")


def room(folder: Path, needed_bytes: int) -> Diagnosis:
    """Report the free space on the disk."""
    free_bytes = shutil.disk_usage(folder).free
    what = f"{free_bytes / 2**30:.1f} GiB free in {folder}"
    remedy = "free some space, `esper-ab tidy` finished runs, or choose another folder with --output-dir"
    if free_bytes < needed_bytes:
        return problem("disk", what, remedy)
    return ok("disk", what) if free_bytes >= _LITTLE_BYTES else warning("disk", what, remedy)


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
    taken = []
    for _ in range(_SYNCS):
        os.write(descriptor, b"x" * 4096)
        begin = time.perf_counter()
        getattr(os, "fdatasync", os.fsync)(descriptor)
        taken.append(time.perf_counter() - begin)
    return taken


def sync_time(taken_s: list[float]) -> Diagnosis:
    """Report the median and the longest time of an fdatasync."""
    median_s, worst_s = statistics.median(taken_s), max(taken_s)
    what = f"median {significant(1e3 * median_s)} ms, worst {significant(1e3 * worst_s)} ms of {len(taken_s)}"
    if median_s > _SLOW_S:
        return warning("fsync", f"{what}; every record waits that long", "keep runs on a local disk with --output-dir")
    return ok("fsync", what)
