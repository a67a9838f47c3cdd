"""Host training in bfloat16 against float32: one epoch of each, interleaved."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from benchmarks.machine import Spread, interleaved
from benchmarks.worlds import Case, World, build
from workers.growth.bank.bank import COMPUTED_IN

CASES = tuple(
    Case(task=task, n_envs=n, live_seeds=seeds, batches=4)
    for task in ("digits", "cifar10")
    for seeds in (0, 3)
    for n in (4, 16)
)


def measure(repeats: int) -> list[dict[str, Any]]:
    """Milliseconds per step of float32, and how much faster bfloat16 is, for every case; core time."""
    found = []
    for case in CASES:
        single, half = build(case), in_half(case)
        laps = interleaved({"float32": single.bank_epoch, "bf16": half.bank_epoch}, repeats)
        ratios = [a.core / b.core for a, b in zip(laps["float32"], laps["bf16"], strict=True)]
        steps = [1e3 * lap.core / case.batches for lap in laps["float32"]]
        speed_up = Spread.of(ratios)
        found.append({"case": asdict(case), "float32_ms": asdict(Spread.of(steps)), "speed_up": asdict(speed_up)})
        print(f"{case}: {speed_up.median:.2f}", flush=True)
    return found


def in_half(case: Case) -> World:
    """The same hosts and seeds, trained in bfloat16."""
    world = build(case)
    world.bank._computed = COMPUTED_IN["bf16"]
    return world


def matrix_product() -> dict[str, float]:
    """10^9 operations per second of a large product in float32 and in bfloat16: what the processor could do."""
    n = 1536
    a, b = torch.randn(n, n), torch.randn(n, n)
    works = {str(kind).removeprefix("torch."): (a.to(kind), b.to(kind)) for kind in (torch.float32, torch.bfloat16)}
    laps = interleaved({name: lambda x=x, y=y: x @ y for name, (x, y) in works.items()}, 8)
    return {name: 2 * n**3 / min(lap.core for lap in one) / 1e9 for name, one in laps.items()}
