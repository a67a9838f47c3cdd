"""Part 7: launches, waits and the GPU's busy share in an epoch, by torch's profiler."""

import json
from dataclasses import asdict, replace
from typing import Any

from benchmarks import kernels
from benchmarks.gpu import on_gpu
from benchmarks.machine import timed
from benchmarks.markdown import hosts_of, table
from benchmarks.worlds import Case
from torch.profiler import ProfilerActivity, profile, record_function, supported_activities

from signoff import trace
from signoff.machine import Machine

TITLE = "Launches, waits and busy share"
BUDGET_S = 30
MOST_WAITS = 1  # of an epoch: for the losses of all
_WINDOW = "epoch"
_BATCHES = 4


def measure(machine: Machine) -> dict[str, Any]:
    """Profile an epoch of digits and of 32x32x3."""
    sizes = (16, 256) if machine.real else (2,)
    cases = [Case(task=task, n_envs=n, live_seeds=3, batches=_BATCHES) for task in ("digits", "cifar10") for n in sizes]
    return {"real": machine.real, "cells": [_cell(machine, case) for case in cases]}


def _cell(machine: Machine, case: Case) -> dict[str, Any]:
    world = on_gpu(case)
    world.bank_epoch()
    undisturbed = timed(world.bank_epoch).wall
    supported_kinds = supported_activities()  # type: ignore[no-untyped-call]  # torch's CPU build cannot ask CUDA
    activities = [activity for activity in (ProfilerActivity.CPU, ProfilerActivity.CUDA) if activity in supported_kinds]
    with profile(activities=activities) as profiler, record_function(_WINDOW):
        world.bank_epoch()
    file = machine.folder / "trace.json"
    profiler.export_chrome_trace(str(file))
    summary = trace.summary(json.loads(file.read_bytes())["traceEvents"], _WINDOW)
    counted = kernels.per_minibatch(replace(case, n_envs=min(case.n_envs, 16))).total()
    return {"case": asdict(case), "epoch_ms": 1e3 * undisturbed, "counted_per_minibatch": counted, **summary}


def problems(findings: dict[str, Any]) -> list[str]:
    """Fewer launches than the calls counted without a GPU, more waits than documented, a GPU that did nothing."""
    lines = [] if findings["cells"] else ["nothing was measured"]
    for cell in findings["cells"]:
        description = f"{hosts_of(cell['case'])} with {cell['case']['n_envs']} environments"
        counted = cell["counted_per_minibatch"] * cell["case"]["batches"]
        if not counted / 2 <= cell["launches"] <= 4 * counted:
            lines.append(f"{description}: {cell['launches']} launches in an epoch; about {counted} calls were counted")
        if cell["waits"] > MOST_WAITS:
            lines.append(f"{description}: {cell['waits']} waits in an epoch, allowed {MOST_WAITS}")
        if findings["real"] and not 0.0 < cell["busy_share"] <= 1.0:
            lines.append(f"{description}: the profiler saw the GPU busy for a share of {cell['busy_share']:.2f}")
    return lines


def render(findings: dict[str, Any]) -> list[str]:
    """Return a table of epochs, and what took longest."""
    rows = []
    longest_operations = []
    for cell in findings["cells"]:
        hosts = hosts_of(cell["case"])
        n_envs = cell["case"]["n_envs"]
        launches = cell["launches"] / cell["case"]["batches"]
        busy_text = f"{100 * cell['busy_share']:.0f} %" if findings["real"] else "missing"
        rows.append(
            (
                hosts,
                n_envs,
                f"{launches:.0f}",
                cell["counted_per_minibatch"],
                cell["waits"],
                f"{cell['epoch_ms']:.1f}",
                f"{cell['wall_ms']:.1f}",
                busy_text,
            )
        )
        longest_operations += [(hosts, n_envs, f"`{name}`", f"{ms:.2f}") for name, ms in cell["longest"]]
    header = (
        "hosts | n_envs | launches per minibatch | counted without a GPU | waits per epoch | epoch, ms "
        "| epoch while profiled, ms | busy, of the profiled epoch"
    )
    return [*table(header, rows), "", *table("hosts | n_envs | what took longest on the GPU | ms", longest_operations)]
