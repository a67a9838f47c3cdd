"""Benchmark of host training in bfloat16 against float32, by torch and by the native kernel, on one core of a CPU."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.hosts import native
from benchmarks.machine import Lap, interleaved, spread
from benchmarks.markdown import hosts_of, ranged, table
from benchmarks.worlds import Case, build
from workers.commands.describe import cpu_bf16

CASES = tuple(
    Case(task=task, n_envs=n_envs, live_seeds=live_seeds)
    for task in ("digits", "cifar10")
    for live_seeds in (0, 3)
    for n_envs in (4, 16)
)


def measure(repeats: int) -> dict[str, Any]:
    """Time training steps in both precisions."""
    flags = Path("/proc/cpuinfo").read_text().split()  # among other words
    return {"bf16": cpu_bf16(flags), "repeats": repeats, "cells": [_cell(case, repeats) for case in CASES]}


def _cell(case: Case, repeats: int) -> dict[str, Any]:
    worlds = {
        "torch": build(case),
        "native": build(case, kernel=native().kernel),
        "bf16": build(replace(case, amp="bf16")),
    }
    laps = interleaved({name: world.bank_epoch for name, world in worlds.items()}, repeats)
    print(f"{case}: done", flush=True)
    return {
        "case": asdict(case),
        "bf16_ms": spread([1e3 * lap.core / case.batches for lap in laps["bf16"]]),
        "bf16_over": {name: _ratios(laps["bf16"], laps[name]) for name in ("torch", "native")},
    }


def _ratios(laps: list[Lap], other_laps: list[Lap]) -> dict[str, float]:
    return spread([lap.core / other.core for lap, other in zip(laps, other_laps, strict=True)])


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    rows = [
        (
            hosts_of(cell["case"]),
            cell["case"]["n_envs"],
            cell["case"]["live_seeds"],
            ranged(cell["bf16_ms"]),
            *(ranged(cell["bf16_over"][name]) for name in ("torch", "native")),
        )
        for cell in record["cells"]
    ]
    return [
        f"The processor's best bfloat16 instructions: {record['bf16'] or 'none'}. Core time of a training step of all "
        "environments, medians and quartiles of interleaved measurements. Above 1, bf16, which only torch has, is "
        "slower than float32.",
        "",
        *table("hosts | n_envs | live seeds | bf16, ms per step | bf16 ÷ torch's float32 | bf16 ÷ native kernel", rows),
    ]
