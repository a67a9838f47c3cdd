"""The machine a benchmark ran on: names, peak and bandwidth measured in the same run, and per-thread clocks."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from esper_ab.health.processor import first_core
from workers.commands.torch_facts import multiply_adds_per_s

QUICK_REPEATS = 3  # with at most this many repeats, a run is a quick look with fewer and smaller cells
_FMA_ROUNDS = 2_000_000
_COPIED = 1 << 24  # floats of the copy that measures the bandwidth


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the quartiles of repeated measurements."""
    low, median, high = np.percentile(np.asarray(values), [25, 50, 75]).tolist()
    return {"median": median, "low": low, "high": high}


@dataclass(frozen=True)
class Lap:
    """Seconds of one call: core time of this thread, and wall time."""

    core: float
    wall: float


def timed(work: Callable[[], Any]) -> Lap:
    """Run once. Core time excludes other processes on a busy machine; wall time includes them."""
    wall = time.perf_counter()
    core = time.thread_time()
    work()
    return Lap(time.thread_time() - core, time.perf_counter() - wall)


def interleaved(works_by_name: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[Lap]]:
    """Run A B C A B C …, after one uncounted round."""
    for work in works_by_name.values():
        work()
    laps: dict[str, list[Lap]] = {name: [] for name in works_by_name}
    for _ in range(repeats):
        for name, work in works_by_name.items():
            laps[name].append(timed(work))
    return laps


def fma_rounds() -> Callable[[], int]:
    """Compile fma.cpp for this CPU; each call runs it for about ten milliseconds and returns the operations."""
    source = Path(__file__).with_name("fma.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "fma.so"
        command = [os.environ.get("CXX", "g++"), "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source]
        subprocess.run(command, check=True)
        rounds = ctypes.CDLL(str(library)).fma_rounds
    rounds.restype = ctypes.c_long
    rounds.argtypes = [ctypes.c_long, ctypes.c_void_p]

    return lambda: int(_FMA_ROUNDS * rounds(_FMA_ROUNDS, np.empty(16, np.float32).ctypes.data))


def fma_loop() -> Callable[[], float]:
    """Return a function that measures 10^9 float32 operations per second of pure multiply-adds in this thread."""
    rounds = fma_rounds()

    def gflops() -> float:
        start = time.thread_time()
        operations = rounds()
        return operations / (time.thread_time() - start) / 1e9

    return gflops


def bandwidth_gb() -> float:
    """Return 10^9 bytes per second, read and written, of a copy far larger than the caches; the best of several."""
    a = torch.randn(_COPIED)
    b = torch.empty_like(a)
    laps = interleaved({"copy": lambda: b.copy_(a)}, 8)["copy"]
    return float(2 * a.element_size() * _COPIED / min(lap.core for lap in laps) / 1e9)


def _caches() -> dict[str, str]:
    """Return the first core's cache sizes by level, as reported by Linux."""
    caches = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            caches[f"L{level}"] = size
    return caches


def processor() -> dict[str, str]:
    """Return name, family, model and stepping of the first core's CPU, as reported by Linux."""
    cpuinfo = Path("/proc/cpuinfo")
    core = first_core(cpuinfo.read_text() if cpuinfo.exists() else "")
    return {
        "processor": core.get("model name", platform.processor()),
        "family": core.get("cpu family", ""),
        "model": core.get("model", ""),
        "stepping": core.get("stepping", ""),
    }


def describe() -> dict[str, Any]:
    """Return the current CPU with family, model and caches, load, torch and its build."""
    gflops = fma_loop()
    return {
        **processor(),
        "caches": _caches(),
        "cores": os.cpu_count(),
        "vector_unit": torch.backends.cpu.get_cpu_capability(),
        "load_average": os.getloadavg()[0],
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "multiply_adds_per_s": multiply_adds_per_s(),
        "fma_gflops": max(gflops() for _ in range(8)),
        "bandwidth_gb_s": bandwidth_gb(),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
    }
