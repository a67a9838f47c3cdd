"""Limits of this process, spawning, packages and the terminal."""

from __future__ import annotations

import locale
import multiprocessing
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from esper_ab.contracts.own_packages import nothing_of_the_user
from esper_ab.health.diagnosis import Diagnosis, ok, problem, warning
from esper_ab.health.memory import LEAST_BYTES

_FEW_FILES, _FEW_PROCESSES = 1024, 256
_LITTLE_SHM_BYTES = 64 << 20
_SPAWN_S = 60.0
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)")


def system_diagnoses() -> Iterator[Diagnosis]:
    """Check process limits, shared memory and spawning."""
    numbers = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS)
    yield from limits(*(resource.getrlimit(number)[0] for number in numbers))
    yield shared_memory(Path("/dev/shm"))
    yield spawning()


def limits(files: int, processes: int, addresses: int) -> Iterator[Diagnosis]:
    """Check soft limits of setrlimit(2); -1: no limit."""
    yield _limit("open files", files, _FEW_FILES, "ulimit -n 4096")
    yield _limit("processes", processes, _FEW_PROCESSES, "ulimit -u 4096")
    if 0 <= addresses < LEAST_BYTES:
        what = f"{addresses / 2**30:.2f} GiB; libraries alone need {LEAST_BYTES / 2**30:.2f}"
        yield problem("limit of addresses", what, "ulimit -v unlimited")


def _limit(topic: str, value: int, few: int, remedy: str) -> Diagnosis:
    what = "no limit" if value < 0 else f"{value} at most"
    return warning(topic, what, remedy) if 0 <= value < few else ok(topic, what)


def shared_memory(folder: Path) -> Diagnosis:
    """Check /dev/shm, which torch and its libraries use for memory shared between processes."""
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        return warning("shared memory", f"{folder} cannot be written", "mount it; docker: --shm-size 1g")
    free_bytes = shutil.disk_usage(folder).free
    what = f"{free_bytes / 2**20:.0f} MiB free in {folder}"
    if free_bytes < _LITTLE_SHM_BYTES:
        return warning("shared memory", what, "docker: --shm-size 1g")
    return ok("shared memory", what)


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
