"""What does half precision of host training save, and what does it do to outcomes? An A/B of precision, and its speed.

Two groups with equal settings on the same randomness, one trained in float32, one in bfloat16. Their difference is what
precision does to the outcome; the rule and the margin are those of any other comparison.

    scripts/precision [--out FOLDER]       run what is missing in FOLDER (a temporary one), then write the table into
                                           docs/evidence/scaling.md, its numbers into benchmarks/precision.json
    scripts/precision --speed              measure the speed alone; the outcomes in benchmarks/precision.json stay

The budget was fixed before any outcome was seen: 20 pairs, about ten minutes on two cores that others use, too.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from benchmarks import machine, precision
from marks import between
from scipy import stats

from esper_ab.analysis.analyse import analyse
from esper_ab.analysis.observe import pairs_of
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import mean
from esper_ab.stats.descriptive.correlation import pair_correlation
from workers.process.setup import keep_freed_memory

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs/evidence/scaling.md", ROOT / "docs/evidence/benchmarks/precision.json"
MARK = "precision table"
REPEATS = 7
EXPERIMENT = (
    "--groups", "bf16=shaped,float32=shaped", "--group", "bf16:growth.amp=bf16", "--task", "digits",
    "--seeds", "20", "--looks", "20", "--episodes", "3", "--steps", "12", "--n-envs", "4", "--rng-seed", "5",
)  # fmt: skip


def run(folder: Path) -> History:
    """The experiment's history, from `folder` if it is there and finished."""
    if not (folder / "precision").exists():
        command = [sys.executable, "-m", "esper_ab.launch", *EXPERIMENT, "--quiet", "--json"]
        subprocess.run(
            [*command, "--name", "precision", "--output-dir", str(folder)], cwd=ROOT, check=True,
            stdout=subprocess.DEVNULL,
        )
    history = load(folder / "precision").history
    if not history.finished:
        raise SystemExit(f"{folder / 'precision'} is not finished; remove it and call again")
    return history


def outcomes(history: History) -> dict[str, Any]:
    """The comparison in numbers: points."""
    comparison = analyse(history).comparisons[0]
    pairs = pairs_of(history, history.design.comparisons[0])
    a, b = [pair.a for pair in pairs], [pair.b for pair in pairs]
    correlation = pair_correlation(a, b)
    effect, margin = comparison.effect, history.design.margin
    if effect is None or not effect.sd:
        raise SystemExit("no difference between the groups varies: nothing to say about precision")
    return {
        "experiment": EXPERIMENT,
        "pairs": len(pairs),
        "difference": msgspec.to_builtins(effect),
        "interval": effect.interval(0.05),
        # Two one-sided tests at 0.05, power 0.8 at no difference (Schuirmann 1987), by the normal approximation.
        "pairs_for_equivalence": math.ceil(((stats.norm.isf(0.05) + stats.norm.isf(0.1)) * effect.sd / margin) ** 2),
        "equivalence": msgspec.to_builtins(comparison.equivalence),
        "verdict": str(comparison.verdict),
        "sd_of_runs": {"bf16": float(np.std(a, ddof=1)), "float32": float(np.std(b, ddof=1))},
        "correlation": None if correlation is None else correlation.r,
        "diverged": {
            group: sum(env.failed for run in history.of_group(group) for record in run.curve() for env in record.envs)
            for group in history.groups
        },
        "train_s": {
            group: mean(record.timing.train_s for run in history.of_group(group) for record in run.curve())
            for group in history.groups
        },
    }


def table(speed: list[dict[str, Any]]) -> str:
    """Markdown."""
    lines = ["| hosts | n_envs | live seeds | float32, ms per step | bf16 is faster by |", "|---|---|---|---|---|"]
    for one in speed:
        case, ms, ratio = one["case"], one["float32_ms"], one["speed_up"]
        hosts = "32x32x3" if case["task"] == "cifar10" else case["task"]
        lines.append(
            f"| {hosts} | {case['n_envs']} | {case['live_seeds']} | {ms['median']:.2f} "
            f"| {ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}] |"
        )
    return "\n".join(lines)


def told(data: dict[str, Any]) -> str:
    """What stands in the page."""
    found, about, peak = data["outcomes"], data["machine"], data["matrix_product"]
    d, e, (low, high) = found["difference"], found["equivalence"], found["interval"]
    shown = "shown" if e["shown"] else "not shown"
    text = (
        f"Measured by `scripts/precision` on {about['processor']} ({about['vector_unit']}, torch {about['torch']}, one "
        f"thread): a large matrix product does {peak['float32']:.0f} GFLOP/s in float32 and {peak['bfloat16']:.0f} in "
        "bf16, but hosts are small. A number below 1 means that bf16 is slower. GPU: missing."
    )
    after = (
        f"Outcomes, {found['pairs']} pairs on digits, bf16 - float32: {d['mean']:+.2f} points, 95 % interval "
        f"[{low:+.2f}, {high:+.2f}], p = {d['p']:.2f}; equivalence at {e['margin']:g} points {shown} "
        f"(p = {e['p']:.3f}); verdict {found['verdict']}. If there is no difference, {found['pairs_for_equivalence']} "
        "pairs show that it is below the margin in 8 of 10 experiments. Runs of one precision differ by a standard "
        f"deviation of {found['sd_of_runs']['float32']:.2f} points (float32) and {found['sd_of_runs']['bf16']:.2f} "
        f"(bf16); the correlation of a pair is {found['correlation']:.2f}. Diverged hosts: "
        f"{found['diverged']['float32']} and {found['diverged']['bf16']}."
    )
    return f"{textwrap.fill(text, 120)}\n\n{table(data['speed'])}\n\n{textwrap.fill(after, 120)}"


def main() -> None:
    """Run, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where the experiment directory goes, and is looked for")
    parser.add_argument("--speed", action="store_true", help="measure the speed only")
    asked = parser.parse_args()
    if asked.speed:
        found = json.loads(DATA.read_text(encoding="utf-8"))["outcomes"]
    else:
        with tempfile.TemporaryDirectory() as temporary:
            found = outcomes(run((asked.out or Path(temporary)).resolve()))
    torch.set_num_threads(1)
    keep_freed_memory()
    about = machine.describe()
    data = {
        "machine": about,
        "outcomes": found,
        "matrix_product": precision.matrix_product(),
        "speed": precision.measure(REPEATS),
    }
    DATA.parent.mkdir(exist_ok=True)
    DATA.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), MARK, told(data)), encoding="utf-8")
    print(told(data))


if __name__ == "__main__":
    main()
