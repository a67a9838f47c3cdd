"""Composition of a bank's training step: torch's calls by kind, their number, and their share of the time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict
from typing import Any

import torch

from benchmarks.kernels import per_minibatch
from benchmarks.machine import Spread, interleaved
from benchmarks.worlds import Case, World, build

CASES = tuple(
    Case(task=task, n_envs=n, live_seeds=seeds) for task in ("digits", "cifar10") for n in (1, 16) for seeds in (0, 3)
)
# Kind -> parts of names of aten's calls; the first kind that fits counts. A call that fits none is elementwise.
KINDS = {
    "convolutions": ("convolution", "conv2d", "mkldnn"),
    "products": ("bmm", "mm", "addmm", "baddbmm", "linear"),
    "norms": ("batch_norm", "group_norm", "var_mean", "norm"),
    "pooling": ("pool", "upsample"),
    "update": ("_fused_sgd_", "_foreach"),
    "copies": ("copy_", "cat", "index", "gather", "scatter", "clone", "contiguous", "_to_copy", "resize", "fill",
               "zero"),
    "views": ("view", "slice", "select", "as_strided", "permute", "transpose", "expand", "split", "reshape", "empty",
              "narrow", "unsqueeze", "squeeze", "detach", "unbind", "t"),
}  # fmt: skip
OTHER = "value by value"


def kind_of(name: str) -> str:
    """Return the kind of an aten call."""
    plain = name.removeprefix("aten::")
    for kind, parts in KINDS.items():
        if any(part == plain or (len(part) > 2 and part in plain) for part in parts):
            return kind
    return OTHER


def measure(repeats: int) -> dict[str, Any]:
    """Return, per case, core time and calls of a step, and each kind's share of the time within calls."""
    return {"profile": [_case(case, repeats) for case in CASES], "gpu": "missing"}


def _case(case: Case, repeats: int) -> dict[str, Any]:
    world = build(case)
    laps = interleaved({"step": lambda: world.bank_epoch() and None}, repeats)["step"]
    times, calls = _profiled(world)
    whole = sum(times.values())
    found = {
        "case": asdict(case),
        "step_ms": asdict(Spread.of([1e3 * lap.core / case.batches for lap in laps])),
        "calls": calls / case.batches,
        "kernels": per_minibatch(case).total(),
        "shares": {kind: times.get(kind, 0.0) / whole for kind in (*KINDS, OTHER)},
    }
    print(f"{case}: {found['calls']:.0f} calls, {found['kernels']} kernels", flush=True)
    return found


def _profiled(world: World) -> tuple[dict[str, float], int]:
    """Return, for one epoch, microseconds within calls of each kind, excluding nested calls, and the number of calls.
    """
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        world.bank_epoch()
    times: defaultdict[str, float] = defaultdict(float)
    calls = 0
    for event in profiler.key_averages():
        if event.key.startswith("aten::"):
            times[kind_of(event.key)] += event.self_cpu_time_total
            calls += event.count
    return times, calls


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's lines."""
    kinds = (*KINDS, OTHER)
    lines = [
        "Core time of a step is measured without the profiler. Calls are torch's, those that a call makes counted in; "
        "shares are of the time within calls, each less the calls that it makes. The profiler adds about a "
        "microsecond to each, so small calls look dearer than they are. What a call costs at least, some microseconds, "
        "and not arithmetic, is what small hosts pay for. Seeds are of all seven blueprints in turn. Kernels are those "
        "that a GPU would be given, counted on torch's meta device (scripts/benchmarks/kernels.py).",
        "",
        f"| hosts | n_envs | live seeds | ms per step | calls | kernels | {' | '.join(kinds)} |",
        f"| --- | --- | --- | --- | --- | --- | {' | '.join('---' for _ in kinds)} |",
    ]
    for one in record["profile"]:
        case, shares = one["case"], one["shares"]
        hosts = "32x32x3" if case["task"] == "cifar10" else case["task"]
        lines.append(
            f"| {hosts} | {case['n_envs']} | {case['live_seeds']} | {one['step_ms']['median']:.2f} "
            f"| {one['calls']:.0f} | {one['kernels']} | {' | '.join(f'{100 * shares[kind]:.0f} %' for kind in kinds)} |"
        )
    return lines
