"""CPU cores, quota and instructions, and memory. Texts of /proc and /sys in, diagnoses out."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from esper_ab.contracts.machine import Kernel
from esper_ab.contracts.process_start import usable_cores
from esper_ab.health import control_groups
from esper_ab.health.control_groups import Allowance
from esper_ab.health.diagnosis import Diagnosis, ok, warning
from esper_ab.health.system_file import text_of

_CPU_INFO = Path("/proc/cpuinfo")
_FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_tile", "amx_bf16", "asimd", "bf16")  # names of /proc/cpuinfo
_LITTLE_BYTES = 2 << 30  # for two workers and the report


def processor_diagnoses() -> Iterator[Diagnosis]:
    """Check this process's CPU and memory; its workers inherit the limits."""
    usable, there = usable_cores(), os.cpu_count() or 1
    yield cores(usable, there)
    groups = control_groups.folders()
    yield quota(cpu_quota(groups), usable)
    yield features(text_of(_CPU_INFO))
    yield memory(text_of(Path("/proc/meminfo")), control_groups.memory(groups))


def first_core(cpuinfo: str) -> dict[str, str]:
    """Return what the text of /proc/cpuinfo says of the first core, by key; {} for an empty one."""
    lines = cpuinfo.partition("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}


def name_of_processor(cpuinfo: str | None = None) -> str:
    """Return the processor's name with family and model, which decide how it rounds; elsewhere its architecture.

    `cpuinfo` is the text of /proc/cpuinfo; None reads it. The libraries of two processors of one architecture may
    compute other last digits, so the architecture alone does not tell machines apart.
    """
    told = first_core(text_of(_CPU_INFO) if cpuinfo is None else cpuinfo)
    if "model name" not in told:
        return platform.processor() or platform.machine()
    numbers = [f"{key} {told[name]}" for key, name in (("family", "cpu family"), ("model", "model")) if name in told]
    return told["model name"] + (f" ({', '.join(numbers)})" if numbers else "")


def cores(usable: int, there: int) -> Diagnosis:
    """Report whether CPU affinity excludes cores of the machine."""
    if usable < there:
        return warning(
            "cores", f"{usable} of {there} cores may be used (CPU affinity)",
            "start with a wider `taskset`, or ask the batch system for more cores; lanes are counted by usable cores",
        )  # fmt: skip
    return ok("cores", f"{usable}, all of this machine may be used")


def cpu_quota(folders: list[Path]) -> float | None:
    """Return the least CPU quota among `folders`, in cores; None without a limit."""
    limits = []
    for folder in folders:
        words = text_of(folder / "cpu.max").split()  # v2: "150000 100000" or "max 100000"
        if not words:
            words = [text_of(folder / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            limits.append(int(words[0]) / int(words[1]))
    return min(limits, default=None)


def quota(cores_worth: float | None, usable: int) -> Diagnosis:
    """Warn of a quota below the number of cores, which stops every worker for part of each period."""
    if cores_worth is None or cores_worth >= usable:
        return ok("cpu quota", "none below the number of cores")
    return warning(
        "cpu quota", f"the control group allows the time of {cores_worth:g} of {usable} cores: workers are throttled",
        "raise the container's CPU limit; results do not depend on it, times do",
    )  # fmt: skip


def features(cpuinfo: str) -> Diagnosis:
    """Report the instructions that decide the speed of the CPU path, and whether bf16 is native."""
    told = first_core(cpuinfo)
    flags = set(told.get("flags", told.get("Features", "")).split())
    found = [name for name in _FEATURES if name in flags]
    native = {"avx512_bf16", "amx_bf16", "bf16"} & flags
    bf16 = "native" if native else "converted to float32"
    return ok("instructions", f"{', '.join(found) or 'none known'}; bf16 on the CPU is {bf16}")


def kernel(kernels: Sequence[Kernel], lacking: str, remedy: str) -> Diagnosis:
    """Report what trains hosts on the CPU; `lacking`: why it is torch, "" where there is a kernel."""
    if lacking:
        return warning("kernel", f"torch trains hosts on the CPU, several times slower: {lacking}", remedy)
    best = next(one for one in kernels if not one.problem)
    return ok("kernel", f"{best.name}, built by {best.build}")


class Room(NamedTuple):
    """Memory that new processes may take."""

    bytes: int  # 0 without `by`: unknown
    by: str  # the limit that leaves no more; "" where the machine has no more


def room() -> Room:
    """Return what the machine has left, or what the limit of a control group leaves if that is less."""
    return _room(text_of(Path("/proc/meminfo")), control_groups.memory(control_groups.folders()))


def _room(meminfo: str, limit: Allowance | None) -> Room:
    available = _available(meminfo)
    if limit is None or limit.left >= available > 0:
        return Room(available, "")
    said = f"{limit.by}: {limit.used / 2**30:.1f} of {limit.limit / 2**30:.1f} GiB are in use"
    return Room(limit.left, said)


def _available(meminfo: str) -> int:
    words = {line.split(":")[0]: line.split() for line in meminfo.splitlines() if ":" in line}
    return int(words["MemAvailable"][1]) << 10 if "MemAvailable" in words else 0


def memory(meminfo: str, limit: Allowance | None) -> Diagnosis:
    """Report the machine's available memory, or what the limit of a control group leaves if that is less."""
    there = _room(meminfo, limit)
    what = f"{there.bytes / 2**30:.1f} GiB available" + (f" by {there.by}" if there.by else "")
    if there.bytes < _LITTLE_BYTES:
        return warning("memory", what, "fewer runs at once: --devices cpu:0 --placement sequence")
    return ok("memory", what)
