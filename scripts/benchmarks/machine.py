"""What a benchmark ran on: names, the peak and the bandwidth measured in the same run, and a clock that shares."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

FEW = 3  # repeats and fewer: a quick look, with fewer and smaller cells
_MATRIX = 1536  # side of the product that measures the peak
_IMAGE, _KERNEL = (32, 64, 16, 16), (64, 64, 3, 3)  # of the convolution that measures it too
_COPIED = 1 << 24  # floats of the copy that measures the bandwidth


@dataclass(frozen=True)
class Spread:
    """Quartiles of repeated measurements."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> Spread:
        """First quartile, median and third quartile."""
        low, median, high = np.percentile(np.asarray(values), [25, 50, 75]).tolist()
        return Spread(median, low, high)


@dataclass(frozen=True)
class Lap:
    """Seconds of one call: of this thread on a core, and on the wall."""

    core: float
    wall: float


def timed(work: Callable[[], Any]) -> Lap:
    """Run once. Time on the core does not count other people's work on a busy machine; time on the wall does."""
    wall, core = time.perf_counter(), time.thread_time()
    work()
    return Lap(time.thread_time() - core, time.perf_counter() - wall)


def interleaved(works: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[Lap]]:
    """A B C A B C …, after one round that is not counted."""
    for work in works.values():
        work()
    laps: dict[str, list[Lap]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            laps[name].append(timed(work))
    return laps


def peak_gflops() -> float:
    """10^9 float32 operations per second on this thread, of a large matrix product or a large convolution.

    The better of two libraries, the best of several: MKL does not use the widest registers of every processor.
    """
    a, b = torch.randn(_MATRIX, _MATRIX), torch.randn(_MATRIX, _MATRIX)
    image, kernel = (
        torch.randn(*shape).contiguous(memory_format=torch.channels_last) for shape in (_IMAGE, _KERNEL)
    )
    works = {"product": lambda: a @ b, "convolution": lambda: torch.conv2d(image, kernel, padding=1)}
    laps = {name: min(lap.core for lap in found) for name, found in interleaved(works, 8).items()}
    convolution = 2 * image.shape[0] * image[0, 0].numel() * kernel.numel()
    return float(max(2 * _MATRIX**3 / laps["product"], convolution / laps["convolution"]) / 1e9)


def bandwidth_gb() -> float:
    """10^9 bytes per second, read and written, of a copy far larger than the caches: the best of several."""
    a = torch.randn(_COPIED)
    b = torch.empty_like(a)
    laps = interleaved({"copy": lambda: b.copy_(a)}, 8)["copy"]
    return float(2 * a.element_size() * _COPIED / min(lap.core for lap in laps) / 1e9)


def describe() -> dict[str, Any]:
    """Processor, cores, load, torch and its build, as they are now."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "vector_unit": torch.backends.cpu.get_cpu_capability(),
        "load_average": os.getloadavg()[0],
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "peak_gflops": peak_gflops(),
        "bandwidth_gb_s": bandwidth_gb(),
        "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
    }
