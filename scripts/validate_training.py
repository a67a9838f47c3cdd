"""Does the procedure stay calibrated on real training? An A/A of many cheap experiments, end to end.

Every experiment is real: `launch --groups a=shaped,b=shaped --unpaired`, PPO on the task `synthetic`, evaluated,
journalled and analysed by the package. To save start-up, one launch carries several: its replicates, which share
nothing, are cut into tens; each ten are followed as a plan of ten with looks at 6 and 10, and their first six as a plan
of six with one look.

    scripts/validate_training [--experiments 100]    writes docs/benchmarks/training.json, a table of docs/statistics.md
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from marks import between
from scipy import stats

from esper_ab.analysis.pairs import pairs_of
from esper_ab.design.boundary_cache import calibrate
from esper_ab.design.design import Contrast, make_design
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.verdict.looks import follow

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs" / "statistics.md", ROOT / "docs" / "benchmarks" / "training.json"
PER_LAUNCH = 20  # experiments
LONGEST = 10  # pairs
RULES = (6, 10)  # replicates of the plans that are followed
LIMIT = 0.056  # of the lower limit of the error: beyond it, the procedure is surely not calibrated
FLAGS = (
    "--groups a=shaped,b=shaped --unpaired --task synthetic --episodes 1 --steps 15 --n-envs 1 --set ppo.minibatches=1 "
    "--set growth.batch_size=32 --eval-hosts 1 --no-early-stop --quiet --json"
)


def launched(experiment_dir: Path, experiments: int, rng_seed: int) -> History:
    """The history of one launch that carries `experiments` experiments."""
    replicates = experiments * LONGEST
    command = [
        sys.executable,
        "-m",
        "esper_ab.launch",
        *FLAGS.split(),
        "--replicates",
        str(replicates),
        "--looks",
        str(replicates),
        "--rng-seed",
        str(rng_seed),
        "--out",
        str(experiment_dir.parent),
        "--name",
        experiment_dir.name,
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)
    return load(experiment_dir).history


def decisions(history: History, replicates: int) -> list[str]:
    """Of every experiment in the launch, followed as a plan of `replicates`."""
    (contrast,) = history.design.comparisons
    pairs, found = pairs_of(history, contrast), []
    for first in range(0, history.replicates, LONGEST):
        own = [
            msgspec.structs.replace(pair, replicate=pair.replicate - first)
            for pair in pairs if first <= pair.replicate < first + replicates
        ]
        orders = [tuple(spec.ref.group_id for spec in history.blocks[first + r].runs) for r in range(replicates)]
        experiment = msgspec.structs.replace(history.plan.experiment, replicates=replicates, looks=(), early_stop=True)
        design = make_design(experiment, orders, calibrate, measures=history.design.measures)
        found.append(follow(design, {Contrast(a="a", b="b"): own}, replicates)[contrast].decision)
    return found


def main() -> None:
    """Launch, follow, count, write; exit status 1 when the error is surely above what was promised."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--experiments", type=int, default=100)
    parser.add_argument("--dry", action="store_true", help="write nothing")
    options = parser.parse_args()
    began, found = time.monotonic(), {replicates: [] for replicates in RULES}
    sds: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for launch in range(-(-options.experiments // PER_LAUNCH)):
            count = min(PER_LAUNCH, options.experiments - launch * PER_LAUNCH)
            history = launched(Path(folder) / f"aa-{launch}", count, rng_seed=1000 + launch)
            for replicates in RULES:
                found[replicates] += decisions(history, replicates)
            pairs = pairs_of(history, history.design.comparisons[0])
            sds.append(float(stats.tstd([pair.a for pair in pairs])))
            print(f"{len(found[RULES[0]])} experiments, {time.monotonic() - began:.0f} s", flush=True)
    rows = []
    for replicates in RULES:
        n, wrong = len(found[replicates]), found[replicates].count("crossed")
        limits = stats.binomtest(wrong, n).proportion_ci(method="exact")
        row = {"replicates": replicates, "experiments": n, "wrong": wrong}
        rows.append(row | {"low": limits.low, "high": limits.high})
    minutes = (time.monotonic() - began) / 60
    print(lines(rows, sds, minutes))
    if not options.dry:
        data = {"flags": FLAGS, "rows": rows, "run_sd": sds, "machine": machine()}
        DATA.write_text(json.dumps(data, indent=2) + "\n")
        PAGE.write_text(between(PAGE.read_text(), "training table", lines(rows, sds, minutes)))
    if any(row["low"] > LIMIT for row in rows):
        sys.exit("the error on real training is surely above what was promised")


def machine() -> str:
    return f"{platform.machine()}, Python {platform.python_version()}"


def lines(rows: list[dict], sds: list[float], minutes: float) -> str:
    """The table of the page."""
    flags, sd = FLAGS.partition(" --no-early")[0], sum(sds) / len(sds)
    found = [
        f"Real training, A/A: `launch {flags}`; runs of one group have an SD of {sd:.1f} points.",
        "",
        "| plan | experiments | false BETTER or WORSE | error, 95 % limits |",
        "|---|---|---|---|",
    ]
    for row in rows:
        n, wrong = row["experiments"], row["wrong"]
        error = f"{100 * wrong / n:.1f} % ({100 * row['low']:.1f} to {100 * row['high']:.1f})"
        found.append(f"| {row['replicates']} pairs | {n} | {wrong} | {error} |")
    trained = rows[0]["experiments"] * LONGEST * 2
    return "\n".join([*found, "", f"{trained} policies trained in {minutes:.0f} minutes."])


if __name__ == "__main__":
    main()
