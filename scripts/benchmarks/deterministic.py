"""Benchmark of --deterministic: one epoch with torch's deterministic kernels and one without, interleaved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.machine import Spread, interleaved
from benchmarks.worlds import Case, build

CASES = tuple(Case(task=task, n_envs=16, live_seeds=seeds) for task in ("digits", "cifar10") for seeds in (0, 3))


def measure(repeats: int) -> dict[str, Any]:
    """Return the ratio of a training step's core time with deterministic kernels to the core time without."""
    return {"deterministic": [_case(case, repeats) for case in CASES], "gpu": "missing"}


def _case(case: Case, repeats: int) -> dict[str, Any]:
    world = build(case)

    def epoch(deterministic: bool) -> Callable[[], None]:
        def work() -> None:
            torch.use_deterministic_algorithms(deterministic)
            torch.utils.deterministic.fill_uninitialized_memory = False  # as in a worker
            world.bank_epoch()

        return work

    laps = interleaved({"on": epoch(True), "off": epoch(False)}, repeats)
    torch.use_deterministic_algorithms(False)
    ratios = [on.core / off.core for on, off in zip(laps["on"], laps["off"], strict=True)]
    steps = [1e3 * lap.core / case.batches for lap in laps["off"]]
    cost = Spread.of(ratios)
    print(f"{case}: {cost.median:.3f}", flush=True)
    return {"case": asdict(case), "off_ms": asdict(Spread.of(steps)), "on_over_off": asdict(cost)}


def table(found: dict[str, Any]) -> str:
    """Return the Markdown table."""
    lines = ["| hosts | live seeds | off, ms per step | on ÷ off |", "|---|---|---|---|"]
    for one in found["deterministic"]:
        case, ratio = one["case"], one["on_over_off"]
        hosts = "32x32x3" if case["task"] == "cifar10" else case["task"]
        lines.append(
            f"| {hosts} | {case['live_seeds']} | {one['off_ms']['median']:.2f} "
            f"| {ratio['median']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}] |"
        )
    return "\n".join([*lines, "| any, on a GPU | | missing | missing |"])
