"""Benchmark of host training: native kernel, torch path and loop side by side; validation, episodes, memory."""

import hashlib
import multiprocessing
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import baseline
from benchmarks.machine import QUICK_REPEATS, Lap, fma_loop, interleaved, spread
from benchmarks.markdown import hosts_of, ranged, table
from benchmarks.worlds import Case, World, assert_equal, build, flops_per_step
from esper_ab.contracts.records import RunRef
from esper_ab.contracts.settings import Arithmetic, GroupSettings, HostKernel
from esper_ab.contracts.worker_order import RunSpec
from workers.kinds.growth.kind import GrowthWorld
from workers.kinds.growth.samples import DeviceData
from workers.native import library
from workers.process.setup import keep_freed_memory
from workers.run.session import Session

EXACT, ROUNDED = 1e-9, 1e-4  # after one step, in float64 and in float32
_MOST_HOSTS_CHECKED = 8
EPISODES = 3  # number of episodes whose parts are measured


def _summary(laps: list[Lap], steps: int) -> dict[str, Any]:
    return {
        "core_ms": spread([1e3 * lap.core / steps for lap in laps]),
        "wall_ms": spread([1e3 * lap.wall / steps for lap in laps]),
    }


def _ratios(slow_laps: list[Lap], fast_laps: list[Lap]) -> dict[str, Any]:
    """Return ratios of neighbouring measurements, which the machine's state affects alike."""
    pairs = list(zip(slow_laps, fast_laps, strict=True))
    return {
        "core": spread([a.core / b.core for a, b in pairs]),
        "wall": spread([a.wall / b.wall for a, b in pairs]),
    }


def native() -> Arithmetic:
    """Return the widest kernel that runs here; without a kernel, the benchmark would measure a different program."""
    usable_kernel = next((kernel for kernel in library.kernels() if not kernel.problem), None)
    if usable_kernel is None:
        raise SystemExit("\n".join(f"kernel {kernel.name}: {kernel.problem}" for kernel in library.kernels()))
    return Arithmetic(kernel=usable_kernel.name, kernel_build=usable_kernel.build)


def yardstick_sha256() -> str:
    """Return the sha256 of the loop with which all is compared; ratios to different loops are not comparable."""
    return hashlib.sha256(Path(baseline.__file__).read_bytes()).hexdigest()


def training(case: Case, repeats: int, gflops: Callable[[], float]) -> dict[str, Any]:
    """Time one training step by the native kernel, the torch path and the loop, after checking that all agree.

    The FMA peak is measured in alternation with them, because the CPU's clock and load vary.
    """
    checked_case = replace(case, n_envs=min(case.n_envs, _MOST_HOSTS_CHECKED))
    kernel = native().kernel
    differences = {
        "torch_float64": assert_equal(checked_case, torch.float64, EXACT),
        "torch_float32": assert_equal(checked_case, torch.float32, ROUNDED),
        "native": assert_equal(checked_case, torch.float32, ROUNDED, kernel),
    }
    world = build(case)
    order = torch.from_numpy(world.order)
    loop = world.loop()
    peaks: list[float] = []
    works_by_name = {
        "native": build(case, kernel=kernel).bank_epoch,
        "torch": world.bank_epoch,
        "loop": lambda: loop.train_epoch(world.x, world.split.y, order),
        "peak": lambda: peaks.append(gflops()),
    }
    laps = interleaved(works_by_name, repeats)
    flops = flops_per_step(case)
    peak = spread(peaks[1:])["median"]
    ways = [name for name in works_by_name if name != "peak"]
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


def episode(case: Case, episodes: int, arithmetic: Arithmetic) -> dict[str, Any]:
    """Return the run's stopwatch times of training episodes by phase, in seconds; the first episode is not counted."""
    world = build(case)
    devices = ("cpu:0",) * case.n_envs
    mode = "shaped"
    ref = RunRef(name="b/0", group_id="b", replicate=0, reward_mode=mode, controller="ppo", device="cpu:0")
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
        eval_episodes=case.n_envs,
        eval_reward_modes=(mode,),
        env_devices=devices,
        settings=GroupSettings(growth=case.settings),
        arithmetic=arithmetic,
        telemetry=False,
        policy_file="",
        log_file="",
    )
    splits = _splits(world)
    session = Session(spec, GrowthWorld(spec, world.task, {"cpu:0": splits}))
    timings = [session.train(i, lambda _: None, lambda _: None).timing for i in range(episodes + 1)][1:]
    total = sum(t.total_s for t in timings)
    shares = {p: sum(getattr(t, f"{p}_s") for t in timings) / total for p in ("train", "validate", "decide", "update")}
    return {
        "case": asdict(case),
        "kernel": arithmetic.kernel,
        "steps": spec.steps,
        "train_samples": len(splits.train.y),
        "validation_samples": len(splits.validation.y),
        "seconds": spread([t.total_s for t in timings]),
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


def _grown(case: Case, kernel: HostKernel) -> dict[str, Any]:
    torch.set_num_threads(1)
    keep_freed_memory()
    small_world = build(Case(task=case.task, n_envs=1, live_seeds=0, batches=case.batches), kernel=kernel)
    small_world.bank_epoch()  # libraries and code paths are loaded
    kib_before = _largest_kib()
    world = build(case, kernel=kernel)
    world.bank_epoch()
    growth_kib = _largest_kib() - kib_before
    stacks = [world.bank.host, *world.bank._seeds.values()]
    kept_bytes = sum(t.nbytes for stack in stacks for t in (stack.values, stack.momentum))
    kept_bytes += sum(t.nbytes for moments in world.bank.statistics for t in (moments.mean, moments.var))
    return {"case": asdict(case), "kept_bytes_per_env": kept_bytes / case.n_envs, "grown_mib": growth_kib / 1024}


def _largest_kib() -> int:
    """Return this process's peak resident set so far (ru_maxrss would include the parent's before the exec)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def measure(repeats: int) -> dict[str, Any]:
    """Measure everything in the order of the table; print one line per case."""
    envs, live_seeds = ((4, 16), (0, 3)) if repeats <= QUICK_REPEATS else ((1, 4, 16, 64), (0, 1, 3))
    cases = [
        Case(task=task, n_envs=n, live_seeds=seeds, batches={1: 16, 4: 8}.get(n, 4))
        for task in ("digits", "cifar10")
        for seeds in live_seeds
        for n in envs
    ] + [
        Case(task=task, n_envs=16, live_seeds=seeds, equal_seeds=True)
        for task in ("digits", "cifar10")
        for seeds in live_seeds
        if seeds
    ]
    results: dict[str, Any] = {
        "kernel": native().kernel,
        "yardstick_sha256": yardstick_sha256(),
        "training": [],
        "validation": [],
        "episode": [],
        "memory": [],
    }
    gflops = fma_loop()
    for case in cases:
        result = training(case, repeats, gflops)
        results["training"].append(result)
        ratio = result["ratio"]["loop"]["core"]
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


# --- its page -----------------------------------------------------------------------------------------------------


def _case(case: dict[str, Any]) -> list[object]:
    equal_seeds_text = ", all conv_light" if case.get("equal_seeds") else ""
    return [hosts_of(case), case["n_envs"], f"{case['live_seeds']}{equal_seeds_text}"]


def _training(results: list[dict[str, Any]]) -> list[str]:
    header = (
        "hosts | n_envs | live seeds | loop ÷ native | torch path ÷ native | native, ms per step | torch path, ms "
        "| loop, ms | native, share of the FMA peak | torch path | loop"
    )
    rows = (
        [
            *_case(r["case"]),
            ranged(r["ratio"]["loop"]["core"], 1),
            ranged(r["ratio"]["torch"]["core"], 1),
            *(ranged(r["ms"][way]["core_ms"]) for way in ("native", "torch", "loop")),
            *(f"{100 * r['share_of_peak'][way]:.0f} %" for way in ("native", "torch", "loop")),
        ]
        for r in results
    )
    return ["## One training step of all environments", "", *table(header, rows), ""]


def _validation(results: list[dict[str, Any]]) -> list[str]:
    header = "hosts | n_envs | live seeds | configurations per host | ÷ one plain pass | ms"
    rows = (
        [
            *_case(r["case"]),
            f"{r['configurations_per_host']:.1f}",
            ranged(r["ratio"]["core"]),
            ranged(r["all"]["core_ms"]),
        ]
        for r in results
    )
    return ["## Validation with counterfactuals, native", "", *table(header, rows), ""]


def _episodes(results: list[dict[str, Any]]) -> list[str]:
    phases = ["train", "validate", "decide", "update", "other"]
    header = (
        "hosts | n_envs | kernel | seconds on the wall | env-steps/s | training images per env-step "
        f"| training images/s | {' | '.join(phases)}"
    )
    rows = (
        [
            *_case(r["case"])[:2],
            "torch" if r["kernel"] == "torch" else "native",
            ranged(r["seconds"]),
            f"{r['env_steps_per_s']:.0f}",
            r["train_samples"],
            f"{r['env_steps_per_s'] * r['train_samples']:,.0f}",
            *(f"{100 * r['shares'][p]:.1f} %" for p in phases),
        ]
        for r in results
    )
    return ["## Where an episode of 25 steps goes (shaped reward, ppo)", "", *table(header, rows), ""]


def _memory(results: list[dict[str, Any]]) -> list[str]:
    header = "hosts | n_envs | live seeds | kept per environment, KiB | process grew by, MiB"
    rows = ([*_case(r["case"]), f"{r['kept_bytes_per_env'] / 1024:.1f}", f"{r['grown_mib']:.0f}"] for r in results)
    return ["## Memory, native", "", *table(header, rows)]


def render(record: dict[str, Any]) -> list[str]:
    """Return the page's lines."""
    machine = record["machine"]
    gpu = machine["gpu"] or "none: every figure here is of the CPU, those of a GPU are missing"
    caches = ", ".join(f"{level} {size}" for level, size in machine["caches"].items())
    intro = [
        f"Kernel {record['kernel']}, {machine['vector_unit']}, {machine['threads']} thread; {caches}. GPU: {gpu}.",
        "",
        f"Pure fused multiply-adds in registers: {machine['fma_gflops']:.0f} GFLOP/s at the start; shares of the peak "
        "are of what was measured in turn with each row. Copy bandwidth "
        f"{machine['bandwidth_gb_s']:.0f} GB/s. Medians and quartiles of interleaved measurements; a ratio is of "
        "neighbours in time, in core time: the thread's own, so that other work on the machine is not counted in it, "
        "except for the caches it takes. Before each timing one step of native kernel, torch path and loop is shown to "
        "agree within 1e-4 (torch path and loop in float64: 1e-9) in every parameter, moment and loss.",
        "",
        "The loop is `scripts/benchmarks/baseline.py`: plain modules in channels-last layout, one fused SGD per "
        f"environment (sha256 {record['yardstick_sha256'][:16]}). 32x32x3: hosts of task cifar10 on generated images, "
        "batch 32; digits: batch 64. Seeds are of all seven blueprints in turn; where the table says so they are all "
        "of one.",
        "",
    ]
    parts = (
        _training(record["training"]),
        _validation(record["validation"]),
        _episodes(record["episode"]),
        _memory(record["memory"]),
    )
    return [*intro, *(line for part in parts for line in part)]
