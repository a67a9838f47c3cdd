"""Limits of this process, and packages."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import distributions, version

from esper_ab.health.diagnosis import Diagnosis, ok, problem, warning

_FEW_FILES = 1024
_FEW_PROCESSES = 256
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
            "limit of addresses",
            f"{addresses / 2**30:.2f} GiB; libraries alone need {_LEAST_BYTES / 2**30:.2f}",
            "ulimit -v unlimited",
        )


def _limit(topic: str, value: int, least_value: int, remedy: str) -> Diagnosis:
    limit_words = "no limit" if value < 0 else f"at most {value}"
    if 0 <= value < least_value:
        return warning(topic, limit_words, remedy)
    return ok(topic, limit_words)


def package_diagnoses(packages: Sequence[str]) -> Iterator[Diagnosis]:
    """Report the versions of Python and of those `packages` that are installed."""
    yield ok("python", f"{sys.version.split()[0]} at {sys.executable}")
    installed_packages = [name for name in packages if [*distributions(name=name)]]
    yield ok("packages", ", ".join(f"{name} {version(name)}" for name in installed_packages))
