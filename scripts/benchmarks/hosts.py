"""Host training: bank against loop, share of the peak, validation, where an episode's time goes, memory."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.machine import Lap, Spread, interleaved
from benchmarks.roofline import Roofline
from benchmarks.worlds import Case, World, assert_equal, build, flops_per_step
from esper_ab.contracts.messages import RunSpec
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.settings import Arithmetic, GroupSettings
from workers.growth.environment import DeviceData
from workers.native import library
from workers.process.setup import keep_freed_memory
from workers.run.session import Session

EXACT, ROUNDED = 1e-9, 1e-4  # after one step, in float64 and in float32
_MOST_HOSTS_CHECKED = 8


def _summary(laps: list[Lap], steps: int) -> dict[str, Any]:
    return {
        "core_ms": asdict(Spread.of([1e3 * lap.core / steps for lap in laps])),
        "wall_ms": asdict(Spread.of([1e3 * lap.wall / steps for lap in laps])),
    }


def _ratios(slow: list[Lap], fast: list[Lap]) -> dict[str, Any]:
    """Of neighbouring measurements: what the machine does to one it does to the other."""
    pairs = list(zip(slow, fast, strict=True))
    return {
        "core": asdict(Spread.of([a.core / b.core for a, b in pairs])),
        "wall": asdict(Spread.of([a.wall / b.wall for a, b in pairs])),
    }


def training(case: Case, repeats: int, about: dict[str, Any], *, compiled: bool) -> dict[str, Any]:
    """One training step of bank and loop, after both were shown to compute the same."""
    checked = replace(case, n_envs=min(case.n_envs, _MOST_HOSTS_CHECKED))
    differences = assert_equal(checked, torch.float64, EXACT), assert_equal(checked, torch.float32, ROUNDED)
    world = build(case)
    order = torch.from_numpy(world.order)

    def epoch(**how: bool) -> Callable[[], Any]:
        loop = world.loop(**how)
        return lambda: loop.train_epoch(world.x, world.split.y, order)

    works = {"loop": epoch(), "bank": world.bank_epoch}
    native = next((kernel.name for kernel in library.kernels() if not kernel.problem), None)
    if native is not None:
        assert_equal(checked, torch.float32, ROUNDED, native)
        works["native"] = build(case, kernel=native).bank_epoch
    if compiled:
        works["compiled"] = epoch(compiled=True)
    laps = interleaved(works, repeats)
    flops = flops_per_step(case)
    result = {
        "case": asdict(case),
        "batch_size": case.settings.batch_size,
        "difference_float64": differences[0],
        "difference_float32": differences[1],
        "flops_per_step": flops,
        "repeats": repeats,
        "ratio": _ratios(laps["loop"], laps["bank"]),
        **{name: _summary(values, case.batches) for name, values in laps.items()},
    }
    peak = about["peak_gflops"]
    roofline = Roofline.of(case, peak, about["bandwidth_gb_s"])
    result["roofline_ms"] = 1e3 * roofline.bound
    result["share_of_roofline"] = 1e3 * roofline.bound / result["bank"]["core_ms"]["median"]
    result["share_of_peak"] = flops / (result["bank"]["core_ms"]["median"] * 1e6) / peak
    result["loop_share_of_peak"] = flops / (result["loop"]["core_ms"]["median"] * 1e6) / peak
    if native is not None:
        result["native_kernel"] = native
        result["ratio_native"] = _ratios(laps["loop"], laps["native"])
        result["native_share_of_peak"] = flops / (result["native"]["core_ms"]["median"] * 1e6) / peak
    if compiled:
        result["ratio_compiled"] = _ratios(laps["compiled"], laps["bank"])
    return result


def validation(case: Case, repeats: int) -> dict[str, Any]:
    """A pass with every counterfactual against one of the real networks alone."""
    world = build(case)
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


def episode(case: Case, episodes: int) -> dict[str, Any]:
    """Seconds of a training episode by phase, from the run's own stopwatch, after one that is not counted."""
    world = build(case)
    devices = ("cpu:0",) * case.n_envs
    mode = "shaped"
    ref = RunRef(name="b/0", group_id="b", replicate=0, reward_mode=mode, controller="ppo", lane="cpu:0")
    spec = RunSpec(
        ref=ref,
        experiment_digest="",
        rng_seed=0,
        rng_label="",
        task=case.task,
        data_dir="",
        slots=world.task.slots,
        n_envs=case.n_envs,
        episodes=episodes + 1,
        steps=25,
        eval_hosts=case.n_envs,
        eval_reward_modes=(mode,),
        env_devices=devices,
        settings=GroupSettings(growth=case.settings),
        arithmetic=Arithmetic(),
        telemetry=False,
        policy_file="",
        log_file="",
    )
    splits = _splits(world)
    session = Session(spec, world.task, {"cpu:0": splits})
    timings = [session.train(i, lambda _: None, lambda _: None).timing for i in range(episodes + 1)][1:]
    total = sum(t.total_s for t in timings)
    shares = {p: sum(getattr(t, f"{p}_s") for t in timings) / total for p in ("train", "validate", "decide", "update")}
    return {
        "case": asdict(case),
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
    """Bytes that a bank keeps, and by how much a process of its own grew at its largest to train one epoch."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_grown, (case,))


def _grown(case: Case) -> dict[str, Any]:
    torch.set_num_threads(1)
    keep_freed_memory()
    small = build(Case(task=case.task, n_envs=1, live_seeds=0, batches=case.batches))
    small.bank_epoch()  # libraries and code paths are loaded
    before = _largest_kib()
    world = build(case)
    world.bank_epoch()
    grown = _largest_kib() - before
    stacks = [world.bank.host, *world.bank._seeds.values()]
    kept = sum(t.nbytes for stack in stacks for t in (stack.values, stack.momentum))
    kept += sum(t.nbytes for moments in world.bank.statistics for t in (moments.mean, moments.var))
    return {"case": asdict(case), "kept_bytes_per_env": kept / case.n_envs, "grown_mib": grown / 1024}


def _largest_kib() -> int:
    """Largest resident set of this process so far (ru_maxrss would count the parent's before the exec)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _compiled_too(case: Case) -> bool:
    """Hosts that torch.compile need not compile many times: bare, or with one seed, of one blueprint if many hosts."""
    few = case.n_envs == 1 or (case.n_envs == 16 and (case.equal_seeds or case.live_seeds == 0))
    return few and case.live_seeds <= 1


def measure_all(cases: Iterable[Case], repeats: int, about: dict[str, Any], *, compiled: bool) -> dict[str, Any]:
    """Everything, in the order in which the table shows it; a line per case on stdout."""
    results: dict[str, Any] = {"training": [], "validation": [], "episode": [], "memory": []}
    for case in cases:
        found = training(case, repeats, about, compiled=compiled and _compiled_too(case))
        results["training"].append(found)
        ratio = found["ratio"]["core"]
        print(f"{case}: {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]", flush=True)
        if case.n_envs == 16 and not case.equal_seeds:
            results["validation"].append(validation(case, repeats))
        if case.live_seeds == 3 and not case.equal_seeds:
            results["memory"].append(memory(case))
        if case.live_seeds == 0 and case.n_envs in (4, 16):
            results["episode"].append(episode(case, 2))
    return results
