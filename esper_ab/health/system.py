"""Limits of this process, sockets, processes, packages and the terminal."""

from __future__ import annotations

import locale
import multiprocessing
import os
import re
import resource
import shutil
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from esper_ab.contracts.own_packages import nothing_of_the_user
from esper_ab.health import processes
from esper_ab.health.control_groups import Allowance
from esper_ab.health.diagnosis import Diagnosis, ok, problem, warning
from esper_ab.health.memory import LIMITS
from esper_ab.launchers.local import LocalLauncher

_FEW_FILES = 1024
_LANES = 2  # of the smallest launch: a group on each
_SOCKET_PATH_BYTES = 107  # size of sun_path without the closing zero: unix(7)
_LITTLE_SHM_BYTES = 64 << 20
_SPAWN_S = 60.0
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)")


def system_diagnoses(socket_folder: Path) -> Iterator[Diagnosis]:
    """Check process limits, shared memory, sockets and spawning; `socket_folder`: that of the coordinator's socket."""
    yield from limits({name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0]
                       for name in ("NOFILE", "CORE")})  # fmt: skip
    yield process_limit(processes.tightest())
    yield from memory_limits({number: resource.getrlimit(number)[0] for number in LIMITS})
    yield shared_memory(Path("/dev/shm"))
    yield socket_path(socket_folder)
    yield spawning()


def limits(soft: dict[str, int]) -> Iterator[Diagnosis]:
    """Check the limits in `soft`, by the names of resource(2); -1: no limit."""
    files, core = soft["NOFILE"], soft["CORE"]
    few = 0 <= files < _FEW_FILES
    yield warning("open files", f"{files} at most", "ulimit -n 4096") if few else ok("open files", _limit(files))
    said = f"{_limit(core)}: a worker that crashes may write all its memory"
    yield warning("core files", said, "ulimit -c 0") if core else ok("core files", "none")


def process_limit(least: Allowance | None) -> Diagnosis:
    """Report the limit on processes that leaves the least, and whether a launch on two lanes would be refused."""
    if least is None:
        return ok("processes", "no limit")
    count = processes.needed_to_train(_LANES, LocalLauncher.processes)
    said, remedy = processes.described(least), "ulimit -u 4096, or raise pids.max of the control group"
    if least.left < count:
        return problem("processes", f"{said}; `launch` on {_LANES} lanes needs {count} more", remedy)
    return warning("processes", said, remedy) if least.left < processes.FEW else ok("processes", said)


def memory_limits(soft: Mapping[int, int]) -> Iterator[Diagnosis]:
    """Check the limits in `soft`, by their numbers; -1: no limit."""
    for number, limit in LIMITS.items():
        what, value = f"limit of {limit.what}", soft[number]
        if value < 0:
            yield ok(what, "none")
        else:
            said = f"{value / 2**30:.2f} GiB; libraries alone need {limit.least_bytes / 2**30:.2f}"
            yield problem(what, said, f"{limit.command} unlimited") if value < limit.least_bytes else ok(what, said)


def _limit(value: int) -> str:
    return "no limit" if value < 0 else f"{value} at most"


def shared_memory(folder: Path) -> Diagnosis:
    """Check /dev/shm, which torch and its libraries use for memory shared between processes."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return warning("shared memory", f"{folder} cannot be written", "mount it; docker: --shm-size 1g")
    free_bytes = shutil.disk_usage(folder).free
    what = f"{free_bytes / 2**20:.0f} MiB free in {folder}"
    if free_bytes < _LITTLE_SHM_BYTES:
        return warning("shared memory", what, "docker: --shm-size 1g")
    return ok("shared memory", what)


def socket_path(folder: Path) -> Diagnosis:
    """Bind a unix socket in the folder where the coordinator would bind its own."""
    path = folder / "hub"
    used = len(os.fsencode(path))
    if used > _SOCKET_PATH_BYTES:
        return problem("socket", f"{path} has {used} bytes, {_SOCKET_PATH_BYTES} are allowed", "set TMPDIR to /tmp")
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    except OSError as error:
        return problem("socket", f"{path}: {error.strerror}", "set TMPDIR to a local folder, or use --transport tcp")
    finally:
        path.unlink(missing_ok=True)
    return ok("socket", f"{used} of {_SOCKET_PATH_BYTES} bytes of a path, below {folder.parent}")


def spawning() -> Diagnosis:
    """Start a process as workers are started, but without torch."""
    begin = time.perf_counter()
    try:
        child = multiprocessing.get_context("spawn").Process(target=os.getpid)
        with nothing_of_the_user():
            child.start()
        child.join(_SPAWN_S)
        status = child.exitcode
        if status is None:
            child.kill()
            child.join()
        child.close()
    except OSError as error:
        return problem("spawn", f"no process can be started: {error}", "see ulimit -u and the memory left")
    if status != 0:
        remedy = "python must be able to start itself: see sys.executable"
        return problem("spawn", f"a spawned process ended with {status}", remedy)
    return ok("spawn", f"a process starts in {time.perf_counter() - begin:.2f} s without torch")


def package_diagnoses(package: str, *, also: Iterable[str]) -> Iterator[Diagnosis]:
    """Check Python and the requirements of `package`; list versions of `also`, others only if too old."""
    yield ok("python", f"{sys.version.split()[0]} at {sys.executable}")
    asked = [_REQUIREMENT.match(text) for text in requires(package) or () if "extra ==" not in text]
    named, wrong = [], []
    for match in filter(None, asked):
        name, least = match.groups()
        try:
            found = version(name)
        except PackageNotFoundError:
            wrong.append(problem("packages", f"{name} is not installed", f"pip install '{name}>={least}'"))
            continue
        if _numbers(found) < _numbers(least):
            wrong.append(problem("packages", f"{name} {found} is too old", f"pip install '{name}>={least}'"))
        elif name in also:
            named.append(f"{name} {found}")
    yield from wrong
    yield ok("packages", f"{package} {version(package)}, {', '.join(named)}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.match(r"[0-9.]*", text)[0].strip(".").split(".") if number)  # type: ignore[index]


def terminal_diagnoses() -> Iterator[Diagnosis]:
    """Check where output goes, and whether its encoding has every character."""
    encoding = (sys.stdout.encoding or "none").lower()
    try:
        locale.setlocale(locale.LC_ALL, "")
    except locale.Error:
        yield warning("locale", "LANG or LC_ALL names a locale that is not installed", "export LC_ALL=C.UTF-8")
    else:
        remedy = "export LC_ALL=C.UTF-8 or PYTHONUTF8=1"
        utf8 = encoding.replace("-", "") == "utf8"
        yield ok("locale", f"output is {encoding}") if utf8 else warning("locale", f"output is {encoding}", remedy)
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        colours = "no colours (NO_COLOR)" if os.environ.get("NO_COLOR") else "colours"
        yield ok("terminal", f"{os.environ.get('TERM', 'TERM is not set')}, {columns} columns, {colours}")
    else:
        yield ok("terminal", "none: plain lines")
