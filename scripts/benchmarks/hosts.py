"""Benchmark of host training: native kernel, torch path and loop side by side; validation, episodes, memory."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import baseline
from benchmarks.machine import FEW, Lap, Spread, fma_loop, interleaved
from benchmarks.table import render
from benchmarks.worlds import Case, World, assert_equal, build, flops_per_step
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.settings import Arithmetic, GroupSettings, HostKernel
from workers.growth.samples import DeviceData
from workers.kinds.growth import GrowthWorld
from workers.native import library
from workers.process.setup import keep_freed_memory
from workers.run.session import Session

__all__ = ["measure", "render"]
EXACT, ROUNDED = 1e-9, 1e-4  # after one step, in float64 and in float32
_MOST_HOSTS_CHECKED = 8
EPISODES = 3  # number of episodes whose parts are measured


def _summary(laps: list[Lap], steps: int) -> dict[str, Any]:
    return {
        "core_ms": asdict(Spread.of([1e3 * lap.core / steps for lap in laps])),
        "wall_ms": asdict(Spread.of([1e3 * lap.wall / steps for lap in laps])),
    }


def _ratios(slow: list[Lap], fast: list[Lap]) -> dict[str, Any]:
    """Return ratios of neighbouring measurements, which the machine's state affects alike."""
    pairs = list(zip(slow, fast, strict=True))
    return {
        "core": asdict(Spread.of([a.core / b.core for a, b in pairs])),
        "wall": asdict(Spread.of([a.wall / b.wall for a, b in pairs])),
    }


def native() -> Arithmetic:
    """Return the widest kernel that runs here; without a kernel, the benchmark would measure a different program."""
    found = next((one for one in library.kernels() if not one.problem), None)
    if found is None:
        raise SystemExit("\n".join(f"kernel {one.name}: {one.problem}" for one in library.kernels()))
    return Arithmetic(kernel=found.name, kernel_build=found.build)


def yardstick_sha256() -> str:
    """Return the sha256 of the loop with which all is compared; ratios to different loops are not comparable."""
    return hashlib.sha256(Path(baseline.__file__).read_bytes()).hexdigest()


def training(case: Case, repeats: int, gflops: Callable[[], float]) -> dict[str, Any]:
    """Time one training step by the native kernel, the torch path and the loop, after checking that all agree.

    The FMA peak is measured in alternation with them, because the CPU's clock and load vary.
    """
    checked = replace(case, n_envs=min(case.n_envs, _MOST_HOSTS_CHECKED))
    by = native().kernel
    differences = {
        "torch_float64": assert_equal(checked, torch.float64, EXACT),
        "torch_float32": assert_equal(checked, torch.float32, ROUNDED),
        "native": assert_equal(checked, torch.float32, ROUNDED, by),
    }
    world = build(case)
    order, loop = torch.from_numpy(world.order), world.loop()
    peaks: list[float] = []
    works = {
        "native": build(case, kernel=by).bank_epoch,
        "torch": world.bank_epoch,
        "loop": lambda: loop.train_epoch(world.x, world.split.y, order),
        "peak": lambda: peaks.append(gflops()),
    }
    laps = interleaved(works, repeats)
    flops, peak = flops_per_step(case), Spread.of(peaks[1:]).median
    ways = [name for name in works if name != "peak"]
    return {
        "case": asdict(case),
        "batch_size": case.settings.batch_size,
        "differences": differences,
        "flops_per_step": flops,
        "fma_gflops": peak,
        "repeats": repeats,
        "ratio": {name: _ratios(laps[name], laps["native"]) for name in ways if name != "native"},
        "ms": {name: _summary(laps[name], case.batches) for name in ways},
        "share_of_peak": {
            name: flops / (1e6 * _summary(laps[name], case.batches)["core_ms"]["median"]) / peak for name in ways
        },
    }


def validation(case: Case, repeats: int) -> dict[str, Any]:
    """Time a pass with all counterfactuals against a pass with only the real networks."""
    world = build(case, kernel=native().kernel)
    rows = np.arange(case.n_envs)

    def measure(ablate: bool) -> Callable[[], Any]:
        return lambda: world.bank.measure(world.table, rows, world.split, ablate=ablate)

    configurations = len(world.bank.measure(world.table, rows, world.split, ablate=True).plan.keys) / case.n_envs
    laps = interleaved({"all": measure(True), "plain": measure(False)}, repeats)
    return {
        "case": asdict(case),
        "samples": case.samples,
        "configurations_per_host": configurations,
        "ratio": _ratios(laps["all"], laps["plain"]),
        **{name: _summary(values, 1) for name, values in laps.items()},
    }


def episode(case: Case, episodes: int, by: Arithmetic) -> dict[str, Any]:
    """Return the run's stopwatch times of training episodes by phase, in seconds; the first episode is not counted."""
    world = build(case)
    devices = ("cpu:0",) * case.n_envs
    mode = "shaped"
    ref = RunRef(name="b/0", group_id="b", replicate=0, reward_mode=mode, controller="ppo", device="cpu:0")
    spec = RunSpec(
        ref=ref, experiment_digest="", rng_seed=0, rng_label="", task=case.task, data_dir="", slots=world.task.slots,
        n_envs=case.n_envs, episodes=episodes + 1, steps=25, eval_episodes=case.n_envs, eval_reward_modes=(mode,),
        env_devices=devices, settings=GroupSettings(growth=case.settings), arithmetic=by, telemetry=False,
        policy_file="", log_file="",
    )
    splits = _splits(world)
    session = Session(spec, GrowthWorld(spec, world.task, {"cpu:0": splits}))
    timings = [session.train(i, lambda _: None, lambda _: None).timing for i in range(episodes + 1)][1:]
    total = sum(t.total_s for t in timings)
    shares = {p: sum(getattr(t, f"{p}_s") for t in timings) / total for p in ("train", "validate", "decide", "update")}
    return {
        "case": asdict(case),
        "kernel": by.kernel,
        "steps": spec.steps,
        "train_samples": len(splits.train.y),
        "validation_samples": len(splits.validation.y),
        "seconds": asdict(Spread.of([t.total_s for t in timings])),
        "env_steps_per_s": case.n_envs * spec.steps * episodes / total,
        "shares": shares | {"other": 1.0 - sum(shares.values())},
    }


def _splits(world: World) -> DeviceData:
    if world.case.task == "digits":
        return DeviceData.of(world.task.load(""), torch.device("cpu"))
    return DeviceData(world.split, world.split, world.split)


def memory(case: Case) -> dict[str, Any]:
    """Return the bytes a bank keeps, and the peak memory growth of a separate process while it trains one epoch."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_grown, (case, native().kernel))


def _grown(case: Case, by: HostKernel) -> dict[str, Any]:
    torch.set_num_threads(1)
    keep_freed_memory()
    small = build(Case(task=case.task, n_envs=1, live_seeds=0, batches=case.batches), kernel=by)
    small.bank_epoch()  # libraries and code paths are loaded
    before = _largest_kib()
    world = build(case, kernel=by)
    world.bank_epoch()
    grown = _largest_kib() - before
    stacks = [world.bank.host, *world.bank._seeds.values()]
    kept = sum(t.nbytes for stack in stacks for t in (stack.values, stack.momentum))
    kept += sum(t.nbytes for moments in world.bank.statistics for t in (moments.mean, moments.var))
    return {"case": asdict(case), "kept_bytes_per_env": kept / case.n_envs, "grown_mib": grown / 1024}


def _largest_kib() -> int:
    """Return this process's peak resident set so far (ru_maxrss would include the parent's before the exec)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(repeats: int) -> dict[str, Any]:
    """Measure everything in the order of the table; print one line per case."""
    envs, live_seeds = ((4, 16), (0, 3)) if repeats <= FEW else ((1, 4, 16, 64), (0, 1, 3))
    cases = [
        Case(task=task, n_envs=n, live_seeds=seeds, batches={1: 16, 4: 8}.get(n, 4))
        for task in ("digits", "cifar10") for seeds in live_seeds for n in envs
    ] + [
        Case(task=task, n_envs=16, live_seeds=seeds, equal_seeds=True)
        for task in ("digits", "cifar10") for seeds in live_seeds if seeds
    ]  # fmt: skip
    results: dict[str, Any] = {
        "kernel": native().kernel, "yardstick_sha256": yardstick_sha256(),
        "training": [], "validation": [], "episode": [], "memory": [],
    }  # fmt: skip
    gflops = fma_loop()
    for case in cases:
        found = training(case, repeats, gflops)
        results["training"].append(found)
        ratio = found["ratio"]["loop"]["core"]
        print(f"{case}: {ratio['median']:.1f} [{ratio['low']:.1f}, {ratio['high']:.1f}]", flush=True)
        if case.n_envs == 16 and not case.equal_seeds:
            results["validation"].append(validation(case, repeats))
        if case.live_seeds == 3 and not case.equal_seeds:
            results["memory"].append(memory(case))
        if case.live_seeds == 0 and case.n_envs in (4, 16):
            results["episode"].append(episode(case, EPISODES, native()))
        if case.live_seeds == 0 and case.n_envs == 4:  # torch takes minutes with more
            results["episode"].append(episode(case, EPISODES, Arithmetic()))
    return results
