"""A record as Markdown."""

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
            _range(r["ratio"]["core"]),
            _range(r["ratio"]["wall"]),
            _range(r["bank"]["core_ms"]),
            _range(r["loop"]["core_ms"]),
            f"{100 * r['share_of_roofline']:.0f} %",
            f"{100 * r['share_of_peak']:.1f} %",
            f"{100 * r['loop_share_of_peak']:.1f} %",
            _range(r["ratio_compiled"]["core"]) if "ratio_compiled" in r else "",
        ]
        for r in results
    ]
    header = ["hosts", "n_envs", "live seeds", "loop ÷ bank, core time", "on the wall", "bank, ms per step"]
    header += ["loop, ms per step", "bank, share of roofline", "of peak", "loop, of peak", "torch.compile loop ÷ bank"]
    return ["## (a, b) One training step of all environments", "", *_rows(header, rows)]


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
    return ["## (c) Validation with counterfactuals", "", *_rows(header, rows)]


def _episodes(results: list[dict[str, Any]]) -> list[str]:
    phases = ["train", "validate", "decide", "update", "other"]
    rows = [
        [
            *_case(r["case"])[:2],
            str(r["train_samples"]),
            _range(r["seconds"]),
            f"{r['env_steps_per_s']:.1f}",
            *(f"{100 * r['shares'][p]:.1f} %" for p in phases),
        ]
        for r in results
    ]
    header = ["hosts", "n_envs", "training images", "seconds on the wall", "env-steps/s", *phases]
    return ["## (d) Where an episode of 25 steps goes (shaped reward, ppo)", "", *_rows(header, rows)]


def _memory(results: list[dict[str, Any]]) -> list[str]:
    rows = [
        [*_case(r["case"]), f"{r['kept_bytes_per_env'] / 1024:.1f}", f"{r['grown_mib']:.0f}"] for r in results
    ]
    header = ["hosts", "n_envs", "live seeds", "kept per environment, KiB", "process grew by, MiB"]
    return ["## (i) Memory", "", *_rows(header, rows)]


def render(record: dict[str, Any]) -> str:
    """The whole page."""
    machine = record["machine"]
    gpu = machine["gpu"] or "none: every figure here is of the CPU, those of a GPU are missing"
    intro = [
        "# Host training",
        "",
        f"Written by `scripts/bench hosts`. {machine['processor']}, {machine['cores']} cores, "
        f"{machine['vector_unit']}, torch {machine['torch']}, {machine['threads']} thread; GPU: {gpu}. "
        f"Load average at the start {machine['load_average']:.1f}.",
        "",
        f"Peak of this run: {machine['peak_gflops']:.0f} GFLOP/s in a large float32 matrix product or convolution, "
        "the better; copy bandwidth "
        f"{machine['bandwidth_gb_s']:.0f} GB/s. Medians and quartiles of interleaved measurements; a ratio is of "
        "neighbours in time. Core time is the thread's own: other work on the machine is not counted in it, except for "
        "the caches it takes. The loop is `scripts/benchmarks/baseline.py`: plain modules in channels-last layout, one "
        "fused SGD per environment. Before each timing one step of both is shown to agree within "
        "1e-9 (float64) and 1e-4 (float32) in every parameter, moment and loss. 32x32x3: hosts of task cifar10 on "
        "generated images, batch 32; digits: batch 64. Seeds are of all seven blueprints in turn, so few environments "
        "hold the same; where the table says so they are all of one, which is the other end of the range.",
        "",
    ]
    parts = (
        _training(record["training"]), _validation(record["validation"]),
        _episodes(record["episode"]), _memory(record["memory"]),
    )  # fmt: skip
    return "\n".join([*intro, *(line for part in parts for line in part)]).rstrip() + "\n"
