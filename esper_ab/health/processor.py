"""Checks of CPU cores, CPU quota, kernel and free memory."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from esper_ab.contracts.machine import Kernel
from esper_ab.contracts.process_start import usable_cores
from esper_ab.health import control_groups
from esper_ab.health.control_groups import MemoryLimit
from esper_ab.health.diagnosis import Diagnosis, ok, warning
from esper_ab.health.system_file import text_of

_LITTLE_BYTES = 2 << 30  # for two workers and the report


def processor_diagnoses() -> Iterator[Diagnosis]:
    """Check this process's CPU and memory; its workers inherit the limits."""
    usable_count = usable_cores()
    yield cores(usable_count, os.cpu_count() or 1)
    yield quota(cpu_quota(control_groups.folders()), usable_count)
    yield memory(room())


def first_core(cpuinfo: str) -> dict[str, str]:
    """Return the entry of the first core in the text of /proc/cpuinfo, by key; {} if the text is empty."""
    entry = {}
    for line in cpuinfo.partition("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        entry[key.strip()] = value.strip()
    return entry


def name_of_processor(cpuinfo: str | None = None) -> str:
    """Return the processor's name with family and model, which decide how it rounds; if unknown, its architecture.

    `cpuinfo`: the text of /proc/cpuinfo; if None, it is read. On two processors of one architecture a library may
    compute different last digits, so the architecture alone does not tell machines apart.
    """
    if cpuinfo is None:
        cpuinfo = text_of(Path("/proc/cpuinfo"))
    core = first_core(cpuinfo)
    if "model name" not in core:
        return platform.processor() or platform.machine()
    name = core["model name"]
    numbers = [f"{word} {core[key]}" for word, key in (("family", "cpu family"), ("model", "model")) if key in core]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def cores(usable_count: int, installed_count: int) -> Diagnosis:
    """Report whether CPU affinity excludes cores of the machine."""
    if usable_count < installed_count:
        return warning(
            "cores",
            f"only {usable_count} of {installed_count} cores are available (CPU affinity)",
            "widen `taskset`, or request more cores from the batch system; the number of workers follows from this",
        )
    return ok("cores", f"{usable_count}, all of this machine's")


def cpu_quota(folders: Sequence[Path]) -> float | None:
    """Return the smallest CPU quota among control groups (version 2), in cores; None if there is no limit."""
    quotas = [text_of(folder / "cpu.max").split() for folder in folders]  # "150000 100000" or "max 100000"
    return min((int(words[0]) / int(words[1]) for words in quotas if words and words[0] != "max"), default=None)


def quota(cores_worth: float | None, usable_count: int) -> Diagnosis:
    """Warn of a quota below the number of cores, because such a quota pauses every worker for part of each period."""
    if cores_worth is None or cores_worth >= usable_count:
        return ok("cpu quota", "none below the number of cores")
    return warning(
        "cpu quota",
        f"the control group allows the time of {cores_worth:g} of {usable_count} cores: workers are throttled",
        "raise the container's CPU limit; it affects times, not results",
    )


def kernel(kernels: Sequence[Kernel], missing_reason: str, remedy: str) -> Diagnosis:
    """Warn if hosts on the CPU are trained by torch, or by a narrower kernel than this processor can run.

    `kernels`: those that this processor can run, the widest first. `missing_reason`: why there is no native kernel; ""
    if there is one.
    """
    if missing_reason:
        return warning(
            "kernel", f"torch trains hosts on the CPU, which is several times slower: {missing_reason}", remedy
        )
    best_kernel = next(kernel for kernel in kernels if not kernel.problem)
    widest_kernel = kernels[0]
    if widest_kernel.problem:
        return warning(
            "kernel",
            f"{best_kernel.name} is used, because this processor's widest, {widest_kernel.name}, cannot be: "
            f"{widest_kernel.problem}",
            widest_kernel.remedy,
        )
    return ok("kernel", f"{best_kernel.name}, built by {best_kernel.build}")


class Room(NamedTuple):
    """Memory available to new processes."""

    bytes: int
    by: str  # the limit that leaves only this; "" if the machine itself has no more


def room() -> Room:
    """Return the machine's available memory or, if less, the memory that is left by a control group's limit."""
    return smaller_room(psutil.virtual_memory().available, control_groups.memory(control_groups.folders()))


def smaller_room(available_bytes: int, limit: MemoryLimit | None) -> Room:
    """Return `available_bytes` of the machine or, if less, the memory that is left by `limit`."""
    if limit is None or limit.left >= available_bytes:
        return Room(available_bytes, "")
    return Room(limit.left, f"{limit.by}: {limit.used / 2**30:.1f} of {limit.limit / 2**30:.1f} GiB are in use")


def memory(room: Room) -> Diagnosis:
    """Warn if there is less memory than two workers and a report need."""
    memory_words = f"{room.bytes / 2**30:.1f} GiB available"
    if room.by:
        memory_words += f" under {room.by}"
    if room.bytes < _LITTLE_BYTES:
        return warning("memory", memory_words, "run fewer at once: --devices cpu:0 --placement sequence")
    return ok("memory", memory_words)
