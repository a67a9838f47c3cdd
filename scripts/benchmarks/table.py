"""Renders a record as Markdown."""

from __future__ import annotations

from typing import Any


def _range(spread: dict[str, float], digits: int = 2) -> str:
    return f"{spread['median']:.{digits}f} [{spread['low']:.{digits}f}, {spread['high']:.{digits}f}]"


def _rows(header: list[str], rows: list[list[str]]) -> list[str]:
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines] + [""]


def _case(case: dict[str, Any]) -> list[str]:
    task = "32x32x3" if case["task"] == "cifar10" else case["task"]
    alike = ", all conv_light" if case.get("equal_seeds") else ""
    return [task, str(case["n_envs"]), f"{case['live_seeds']}{alike}"]


def _training(results: list[dict[str, Any]]) -> list[str]:
    rows = [
        [
            *_case(r["case"]),
            _range(r["ratio"]["loop"]["core"], 1),
            _range(r["ratio"]["torch"]["core"], 1),
            *(_range(r["ms"][way]["core_ms"]) for way in ("native", "torch", "loop")),
            *(f"{100 * r['share_of_peak'][way]:.0f} %" for way in ("native", "torch", "loop")),
        ]
        for r in results
    ]
    header = ["hosts", "n_envs", "live seeds", "loop ÷ native", "torch path ÷ native"]
    header += ["native, ms per step", "torch path, ms", "loop, ms"]
    header += ["native, share of the FMA peak", "torch path", "loop"]
    return ["## One training step of all environments", "", *_rows(header, rows)]


def _validation(results: list[dict[str, Any]]) -> list[str]:
    rows = [
        [
            *_case(r["case"]),
            f"{r['configurations_per_host']:.1f}",
            _range(r["ratio"]["core"]),
            _range(r["all"]["core_ms"]),
        ]
        for r in results
    ]
    header = ["hosts", "n_envs", "live seeds", "configurations per host", "÷ one plain pass", "ms"]
    return ["## Validation with counterfactuals, native", "", *_rows(header, rows)]


def _episodes(results: list[dict[str, Any]]) -> list[str]:
    phases = ["train", "validate", "decide", "update", "other"]
    rows = [
        [
            *_case(r["case"])[:2],
            "torch" if r["kernel"] == "torch" else "native",
            _range(r["seconds"]),
            f"{r['env_steps_per_s']:.0f}",
            str(r["train_samples"]),
            f"{r['env_steps_per_s'] * r['train_samples']:,.0f}",
            *(f"{100 * r['shares'][p]:.1f} %" for p in phases),
        ]
        for r in results
    ]
    header = ["hosts", "n_envs", "kernel", "seconds on the wall", "env-steps/s", "training images per env-step"]
    header += ["training images/s", *phases]
    return ["## Where an episode of 25 steps goes (shaped reward, ppo)", "", *_rows(header, rows)]


def _memory(results: list[dict[str, Any]]) -> list[str]:
    rows = [
        [*_case(r["case"]), f"{r['kept_bytes_per_env'] / 1024:.1f}", f"{r['grown_mib']:.0f}"] for r in results
    ]
    header = ["hosts", "n_envs", "live seeds", "kept per environment, KiB", "process grew by, MiB"]
    return ["## Memory, native", "", *_rows(header, rows)]


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
        _training(record["training"]), _validation(record["validation"]),
        _episodes(record["episode"]), _memory(record["memory"]),
    )  # fmt: skip
    return [*intro, *(line for part in parts for line in part)][:-1]  # without the blank line at the end
