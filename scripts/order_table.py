"""Does the order of execution change a result? One unpaired A/A, run four ways, side by side.

Two groups with equal settings, each on its own randomness: fixed sequence (a whole, then b), shuffled sequence,
alternating (one episode of one run at a time) and parallel. What differs between a and b beyond chance would be order.

    scripts/order_table [--out FOLDER]     run what is missing in FOLDER (a temporary one), then write the table into
                                           docs/evidence/statistics-on-training.md and benchmarks/order.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import msgspec
from marks import between

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.observe import pairs_of
from esper_ab.health.processor import name_of_processor
from esper_ab.journal.fold import History, RunHistory
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import mean
from esper_ab.stats.t_tests import paired_difference

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs/evidence/statistics-on-training.md", ROOT / "docs/evidence/benchmarks/order.json"
MARK = "order table"
WAYS = {
    "fixed": ("--devices", "cpu:0", "--placement", "sequence", "--order", "fixed"),
    "shuffled": ("--devices", "cpu:0", "--placement", "sequence", "--order", "shuffled"),
    "alternating": ("--devices", "cpu:0", "--placement", "alternate"),
    "parallel": ("--devices", "cpu:0,cpu:1", "--placement", "spread"),
}
INTRODUCTION = """`scripts/order_table` runs one unpaired A/A four ways: two groups with equal settings, each on its own
randomness. `fixed` runs whole runs one after the other, a, then b, on one device. `shuffled` draws afresh who goes
first, `alternating` takes one episode of one run at a time, `parallel` gives each run a device of its own. There are 16
seeds of small hosts, too small for EQUIVALENT: no group stands clear of one that learns nothing. Workers warm up
before the first episode of record."""
EXPERIMENT = (
    "--groups", "a=shaped,b=shaped", "--unpaired", "--task", "synthetic", "--seeds", "16", "--no-early-stop",
    "--episodes", "3", "--steps", "6", "--n-envs", "2", "--eval-episodes", "2", "--rng-seed", "3",
)  # fmt: skip


def run(name: str, folder: Path) -> History:
    """The experiment's history, from `folder` if it is there and finished."""
    if not (folder / name / "verdict.json").exists():
        command = [sys.executable, "-m", "esper_ab.launch", *EXPERIMENT, *WAYS[name], "--quiet", "--json"]
        subprocess.run(
            [*command, "--name", name, "--output-dir", str(folder)], cwd=ROOT, check=True, stdout=subprocess.DEVNULL
        )
    history = load(folder / name).history
    if not history.finished:
        raise SystemExit(f"{folder / name} is not finished; remove it and call again")
    return history


def digests(history: History) -> dict[str, tuple[str, ...]]:
    """Every record of every run."""
    return {
        name: (*(record.digest for record in one.curve()), one.evaluation.digest if one.evaluation else "")
        for name, one in history.runs.items()
    }


def episode_s(runs: tuple[RunHistory, ...]) -> float | None:
    """Mean wall time of a training episode."""
    return mean(record.timing.total_s for one in runs for record in one.curve())


def row(history: History, reference: History) -> dict[str, Any]:
    """One way of execution in numbers: points and seconds."""
    pairs = pairs_of(history, history.design.comparisons[0])
    difference = paired_difference([pair.a for pair in pairs], [pair.b for pair in pairs])
    firsts = [block.runs[0].ref.group_id for block in history.blocks]
    return {
        "first_in_block": {group: firsts.count(group) for group in history.groups},
        "difference": msgspec.to_builtins(difference),
        "verdict": str(analyse(history).comparisons[0].verdict),
        "identical_to_parallel": digests(history) == digests(reference),
        "episode_s": {group: episode_s(history.of_group(group)) for group in history.groups},
        "warm_up_s": {group: mean(one.warm_up_s for one in history.of_group(group)) for group in history.groups},
    }


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Markdown."""
    lines = [
        "| way | first in its block, a / b | a - b, points, 95 % interval | verdict | records as in parallel "
        "| s per episode, a / b | warm-up s, a / b |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in rows.items():
        d = one["difference"]
        interval = "" if d["low"] is None else f" [{d['low']:+.2f}, {d['high']:+.2f}]"
        lines.append(
            f"| {name} | {_both(one['first_in_block'], 'd')} | {d['mean']:+.2f}{interval} | {one['verdict']} "
            f"| {'bit-identical' if one['identical_to_parallel'] else 'different'} "
            f"| {_both(one['episode_s'], '.3f')} | {_both(one['warm_up_s'], '.3f')} |"
        )
    return "\n".join(lines)


def _conclusion(rows: dict[str, dict[str, Any]]) -> str:
    """What the table shows; written for both outcomes, because on a GPU it may be the other."""
    told = (
        "The plain paired difference is shown, which decides here, too: the plan finds that device and start order "
        "cannot matter. Where they can, on GPUs or with users' code, it adjusts for them, and a fixed order is blocked "
        "whatever the numbers are. Times are of a machine that others "
        "use, too: what they do in the meantime falls on one group when groups run one after the other, and on both "
        "alike when they run side by side."
    )
    same = all(one["identical_to_parallel"] for one in rows.values())
    found = "No record depends on the way, to the bit: order cannot move an outcome here."
    return textwrap.fill(f"{found if same else 'Records depend on the way.'} {told}", 120)


def _both(values: dict[str, Any], form: str) -> str:
    return " / ".join(f"{values[group]:{form}}" for group in ("a", "b"))


def main() -> None:
    """Run, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the four experiment directories go, and are looked for")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (asked.out or Path(temporary)).resolve()
        histories = {name: run(name, folder) for name in WAYS}
        rows = {name: row(history, histories["parallel"]) for name, history in histories.items()}
    told = f"{INTRODUCTION}\n\n{table(rows)}\n\n{_conclusion(rows)}"
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), MARK, told), encoding="utf-8")
    DATA.parent.mkdir(exist_ok=True)
    machine = {"processor": name_of_processor(), "cores": os.cpu_count(), "python": platform.python_version()}
    data = {"experiment": EXPERIMENT, "ways": WAYS, "machine": machine, "rows": rows}
    DATA.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
