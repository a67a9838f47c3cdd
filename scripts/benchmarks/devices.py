"""Benchmark of one run's environments on one device and on two that take turns, interleaved, in wall time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from benchmarks.machine import Spread, interleaved
from benchmarks.worlds import task_of
from esper_ab.contracts.rng import RngPath
from esper_ab.contracts.settings import GrowthSettings, RewardSettings
from workers.environments import Stopwatch, paths_below
from workers.growth.environment import EnvSpec, GrowthEnv
from workers.growth.samples import DeviceData

ENVS = (4, 16)


def measure(repeats: int) -> dict[str, Any]:
    """Return milliseconds of a step (host epoch and validation) on one device, and the speed-up on two."""
    return {"devices": [_case(n, repeats) for n in ENVS], "gpu": "missing"}


def _case(n_envs: int, repeats: int) -> dict[str, Any]:
    """Measure hosts of digits without seeds, as at the start of every episode."""
    one, two = (_environments(n_envs, count) for count in (1, 2))
    laps = interleaved({"one": one.advance, "two": two.advance}, repeats)
    ratios = [a.wall / b.wall for a, b in zip(laps["one"], laps["two"], strict=True)]
    faster = Spread.of(ratios)
    print(f"{n_envs} environments: {faster.median:.2f}", flush=True)
    return {
        "n_envs": n_envs,
        "one_ms": asdict(Spread.of([1e3 * lap.wall for lap in laps["one"]])),
        "two_faster_by": asdict(faster),
    }


def _environments(n_envs: int, count: int) -> GrowthEnv:
    task = task_of("digits")
    names = tuple(f"cpu:{index}" for index in range(count))
    spec = EnvSpec(
        task=task, slots=task.slots, steps=10_000, env_devices=tuple(names[env % count] for env in range(n_envs)),
        growth=GrowthSettings(batch_size=64), reward=RewardSettings(),
    )
    data = DeviceData.of(task.load(""), torch.device("cpu"))
    env = GrowthEnv(spec, dict.fromkeys(names, data), Stopwatch())
    env.begin(paths_below(RngPath(0) / "benchmark" / "devices", n_envs))
    return env


def table(found: dict[str, Any]) -> str:
    """Return the Markdown table."""
    header = "| hosts | n_envs | one device, ms per host epoch with validation | two are faster by |"
    lines = [header, "|---|---|---|---|"]
    for one in found["devices"]:
        ms, ratio = one["one_ms"], one["two_faster_by"]
        lines.append(
            f"| digits, CPU | {one['n_envs']} | {ms['median']:.0f} "
            f"| {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}] |"
        )
    return "\n".join([*lines, "| any, GPUs | | missing | missing |"])
