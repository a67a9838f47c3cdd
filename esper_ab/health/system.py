"""Limits of this process, and packages."""

from __future__ import annotations

import re
import resource
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from esper_ab.health.diagnosis import Diagnosis, ok, problem, warning
from esper_ab.health.memory import LEAST_BYTES

_FEW_FILES, _FEW_PROCESSES = 1024, 256
_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*>=\s*([0-9.]+)")


def system_diagnoses() -> Iterator[Diagnosis]:
    """Check the limits of this process, which its workers inherit."""
    numbers = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_AS)
    yield from limits(*(resource.getrlimit(number)[0] for number in numbers))


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
