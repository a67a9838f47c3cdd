"""Part 8: the peak of a GPU's memory beside the formula of docs/machine.md."""

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from benchmarks.gpu import on_gpu
from benchmarks.markdown import hosts_of, table
from benchmarks.worlds import Case

from esper_ab.plan import gpu_memory
from signoff.machine import Machine
from workers.kinds.growth.preflight import task_facts

TITLE = "Memory"
BUDGET_S = 40
_MIB = 2**20


def measure(machine: Machine) -> dict[str, Any]:
    """Train an epoch and validate with all counterfactuals, for each number of environments."""
    sizes = (16, 64, 256) if machine.real else (2, 4)
    cases = [Case(task=task, n_envs=n, live_seeds=3, batches=2) for task in ("digits", "cifar10") for n in sizes]
    total = torch.cuda.get_device_properties(0).total_memory
    return {"total_mib": total / _MIB, "cells": [_cell(case, total) for case in cases]}


def _cell(case: Case, total: int) -> dict[str, Any]:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    world = on_gpu(case)
    world.bank_epoch()
    world.bank.measure(world.table, np.arange(case.n_envs), world.split, ablate=True)
    torch.cuda.synchronize()
    free_bytes, _ = torch.cuda.mem_get_info()
    reserved_bytes = torch.cuda.memory_reserved()
    training = gpu_memory.training_bytes(task_facts(world.task), case.n_envs, case.settings.batch_size)
    splits = world.split.x.nbytes + world.split.y.nbytes
    share = total // gpu_memory.VALIDATION_SHARE
    return {
        "case": asdict(case),
        "peak_mib": torch.cuda.max_memory_allocated() / _MIB,
        "reserved_mib": reserved_bytes / _MIB,
        "beside_mib": (total - free_bytes - reserved_bytes)
        / _MIB,  # CUDA, its libraries, and whoever else uses the GPU
        "formula_mib": (gpu_memory.FIXED_BYTES + splits + max(training, share)) / _MIB,
        "fixed_mib": gpu_memory.FIXED_BYTES / _MIB,
    }


def problems(findings: dict[str, Any]) -> list[str]:
    """More memory than the formula has, or more outside of torch than its fixed part."""
    lines = [] if findings["cells"] else ["nothing was measured"]
    for cell in findings["cells"]:
        description = f"{hosts_of(cell['case'])} with {cell['case']['n_envs']} environments"
        taken_mib = cell["peak_mib"] + cell["beside_mib"]
        if taken_mib > cell["formula_mib"]:
            lines.append(
                f"{description}: {taken_mib:.0f} MiB at the peak, and the formula has {cell['formula_mib']:.0f}"
            )
        if cell["beside_mib"] > cell["fixed_mib"]:
            lines.append(f"{description}: {cell['beside_mib']:.0f} MiB outside of torch; the fixed part is too small")
        if cell["peak_mib"] <= 0.0:
            lines.append(f"{description}: no memory was measured")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return a table of peaks."""
    rows = [
        (
            hosts_of(cell["case"]),
            cell["case"]["n_envs"],
            *(f"{cell[key]:,.0f}" for key in ("peak_mib", "reserved_mib", "beside_mib", "formula_mib")),
        )
        for cell in findings["cells"]
    ]
    return [
        f"A training epoch with three live seeds, and a validation with all counterfactuals; the GPU has "
        f"{findings['total_mib']:,.0f} MiB. *Outside* is CUDA itself, with whatever else uses the GPU.",
        "",
        *table("hosts | n_envs | tensors at the peak, MiB | reserved by torch | outside | formula", rows),
    ]
