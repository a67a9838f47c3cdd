"""Benchmark of host training on a GPU: torch there, and the native kernel on one core, side by side."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from benchmarks.hosts import native
from benchmarks.machine import QUICK_REPEATS, Lap, interleaved, spread
from benchmarks.markdown import hosts_of, ranged, table
from benchmarks.worlds import BATCH_SIZES, Case, World, build
from esper_ab.contracts.settings import Arithmetic
from workers.devices.by_torch import pin

ENVS = (16, 64, 256)
FEWER_ENVS = (16,)
GPU = "cuda:0"
ROUNDED = 1e-3  # relative difference of an epoch's losses between GPU and CPU, in float32
_BATCHES = 2  # of an epoch: 256 hosts of 32x32x3 take half a second each on a core


def on_gpu(case: Case) -> World:
    """Build a case on the GPU; loss scales of fp16 are so small that no step overflows."""
    world = build(case, device=GPU)
    if world.bank.loss_scales is not None:
        world.bank.loss_scales.scale.fill_(64.0)
    return world


def measure(repeats: int) -> dict[str, Any]:
    """Measure digits and 32x32x3 at each number of environments; SystemExit without a GPU."""
    if not torch.cuda.is_available():
        raise SystemExit(f"error: torch {torch.__version__} can use no GPU here; scripts/bench gpu needs one")
    pin(Arithmetic())  # as workers compute by default
    return cells(FEWER_ENVS if repeats <= QUICK_REPEATS else ENVS, repeats)


def cells(envs: Sequence[int], repeats: int) -> dict[str, Any]:
    """Return the measured cells, and print one line for each."""
    results = []
    for task in BATCH_SIZES:
        for n_envs in envs:
            case = Case(task=task, n_envs=n_envs, live_seeds=3, batches=_BATCHES)
            results.append(cell(case, repeats))
            print(f"{case}: {results[-1]['ms']}", flush=True)
    return {"gpu": torch.cuda.get_device_name(0), "kernel": native().kernel, "repeats": repeats, "cells": results}


def cell(case: Case, repeats: int) -> dict[str, Any]:
    """Time a minibatch of all environments, after a comparison of their first losses."""
    worlds = {"native": build(case, kernel=native().kernel), "gpu": on_gpu(case)}
    first_losses = {name: world.bank_epoch()[0].numpy() for name, world in worlds.items()}
    laps = interleaved({name: world.bank_epoch for name, world in worlds.items()}, repeats)  # waits for the losses
    ratios = [cpu.wall / gpu.wall for cpu, gpu in zip(laps["native"], laps["gpu"], strict=True)]
    return {
        "case": asdict(case),
        "difference": float(np.max(np.abs(first_losses["gpu"] / first_losses["native"] - 1.0))),
        "ms": {name: _ms(lap, case.batches) for name, lap in laps.items()},
        "core_over_gpu": spread(ratios),
    }


def _ms(laps: list[Lap], batches: int) -> dict[str, float]:
    return spread([1e3 * lap.wall / batches for lap in laps])


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's table."""
    rows = [
        (
            hosts_of(cell_of_case["case"]),
            cell_of_case["case"]["n_envs"],
            ranged(cell_of_case["ms"]["native"]),
            ranged(cell_of_case["ms"]["gpu"]),
            ranged(cell_of_case["core_over_gpu"]),
            f"{cell_of_case['difference']:.1e}",
        )
        for cell_of_case in record["cells"]
    ]
    return [
        f"GPU: {record['gpu']}. Milliseconds per minibatch of all environments, with three live seeds, median and "
        "quartiles. Above 1, the GPU is faster than one core. A captured epoch, one CUDA graph, does not exist "
        "(docs/internals/gpu-kernel.md).",
        "",
        *table(
            f"hosts | n_envs | {record['kernel']}, one core, ms | torch on the GPU, ms | core ÷ GPU | difference of "
            "the first losses",
            rows,
        ),
    ]
