"""Does it learn? Held-out accuracy of hosts grown by every controller and reward mode, with intervals over runs.

The budget below was fixed before the first run of record; nothing was tuned on these rng seeds. Work is done in pieces,
each an experiment directory of its own (one replicate of the learning groups, or of the fixed controllers); a finished
piece is never run again, so the script can be stopped at any time and called again.

    scripts/learn [--out experiments/learn]       do what is missing, then write docs/learning.md and its data
    scripts/learn --table                  write them from the pieces that are there
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from marks import between

ROOT = Path(__file__).resolve().parents[1]
TASK, SLOTS = "digits", ("early", "mid", "late")
BATCH_SIZE = 64  # of host training; everything else is the default
REPLICATES, EPISODES, N_ENVS, STEPS, EVAL_EPISODES = 6, 12, 8, 25, 1
FIRST_RNG_SEED = 1000  # piece r uses 1000 + r
SEARCH_RNG_SEED = 77  # of the schedule search: none of the above
LEARNING = ("shaped", "simplified", "sparse")
FIXED = ("wait", "random", "heuristic", "schedule")
ORDER = ("wait", "random", "heuristic", *LEARNING, "schedule")


# --- the ceiling: a fixed schedule found by search ------------------------------------------------------------------


def plan_of(blueprints: tuple[str, ...], style: str, tempo: int) -> tuple[str, ...]:
    """One germination per step in network order, then every seed on to a fossil as soon as it may."""
    births = [
        f"{step}:germinate:{slot}:blueprint={blueprint}:style={style}:tempo={tempo}"
        for step, (slot, blueprint) in enumerate(zip(SLOTS, blueprints, strict=True), start=1)
    ]
    advances = [f"{len(SLOTS)}:advance:{slot}" for slot in SLOTS for _ in range(3)]
    return (*births, *advances, *(f"{len(SLOTS)}:fossilize:{slot}" for slot in SLOTS))


def grade(schedule: tuple[str, ...]) -> float:
    """Mean validation accuracy at the end of N_ENVS hosts grown by `schedule` on the search's rng paths."""
    import torch

    from esper_ab.contracts import catalog
    from esper_ab.contracts.rng import run_path
    from esper_ab.contracts.settings import ControllerSettings, GrowthSettings, RewardSettings
    from workers.controllers.schedule import make
    from workers.growth.environment import DeviceData, EnvSpec, GrowthEnv
    from workers.growth.stopwatch import Stopwatch
    from workers.run.episode import play

    torch.set_num_threads(1)
    task = catalog.entry("workers.tasks", TASK, "TASK")
    spec = EnvSpec(
        task=task,
        slots=SLOTS,
        steps=STEPS,
        env_devices=("cpu",) * N_ENVS,
        growth=GrowthSettings(batch_size=BATCH_SIZE),
        reward=RewardSettings(),
    )
    env = GrowthEnv(spec, {"cpu": DeviceData.of(task.load(""), torch.device("cpu"))}, Stopwatch())
    env.begin_episode(run_path(SEARCH_RNG_SEED, 0) / "schedule-search")
    controller = make(ControllerSettings(schedule=schedule), SLOTS, spec.growth.blueprints)
    result = play(env, controller, {}, Stopwatch(), lambda _step: None)
    return float(np.mean([env.val_accuracy for env in result.envs]))


def search(file: Path) -> tuple[str, ...]:
    """Coordinate search over the blueprint of every slot, then style and tempo; kept in `file`."""
    from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS
    from workers.vocabulary import STYLES, TEMPOS

    if file.exists():
        return tuple(json.loads(file.read_text())["schedule"])
    best: tuple[tuple[str, ...], str, int] = (("conv_light",) * len(SLOTS), "sigmoid_add", 3)
    tried: dict[str, float] = {}
    with ProcessPoolExecutor(2) as pool:
        for axis in range(len(SLOTS) + 2):
            if axis < len(SLOTS):
                options = [((*best[0][:axis], n, *best[0][axis + 1 :]), *best[1:]) for n in DEFAULT_BLUEPRINTS]
            elif axis == len(SLOTS):
                options = [(best[0], style, best[2]) for style, _, _ in STYLES]
            else:
                options = [(*best[:2], tempo) for tempo in TEMPOS]
            plans = [plan_of(*option) for option in options]
            scores = list(pool.map(grade, plans))
            tried |= {json.dumps(option): score for option, score in zip(options, scores, strict=True)}
            best = options[int(np.argmax(scores))]
            print(f"schedule search: {best} {max(scores):.1f} % on validation", flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"schedule": plan_of(*best), "choice": best, "tried": tried}, indent=1))
    return plan_of(*best)


# --- pieces ---------------------------------------------------------------------------------------------------------


def finished(piece: Path) -> bool:
    """Whether a piece has come to its end."""
    from esper_ab.contracts.errors import EsperError
    from esper_ab.journal.load import load

    try:
        ended = load(piece).history.ended
    except (EsperError, OSError):
        return False
    return ended is not None and ended.status == "finished"


def train(piece: Path, groups: tuple[str, ...], rng_seed: int, episodes: int, extra: tuple[str, ...]) -> None:
    """One replicate of `groups` as an experiment of its own; a piece that was cut short is done over."""
    if finished(piece):
        return
    shutil.rmtree(piece, ignore_errors=True)
    print(f"{piece.name}: {', '.join(groups)}", flush=True)
    command = [
        sys.executable, "-m", "esper_ab.launch", "--quiet", "--groups", ",".join(groups), "--task", TASK,
        "--episodes", str(episodes), "--steps", str(STEPS), "--n-envs", str(N_ENVS), "--replicates", "1",
        "--eval-episodes", str(EVAL_EPISODES), "--set", f"growth.batch_size={BATCH_SIZE}",
        "--rng-seed", str(rng_seed), "--out", str(piece.parent), "--name", piece.name, *extra,
    ]  # fmt: skip
    start = time.monotonic()
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    print(f"{piece.name}: {time.monotonic() - start:.0f} s", flush=True)


def run(out: Path) -> None:
    """All pieces that are not there yet, replicate by replicate."""
    schedule = ",".join(json.dumps(entry) for entry in search(out / "schedule.json"))
    ceiling = ("--group", f"schedule:controller.schedule=[{schedule}]")
    for replicate in range(REPLICATES):
        rng_seed = FIRST_RNG_SEED + replicate
        train(out / f"fixed-{replicate}", FIXED, rng_seed, 1, ceiling)
        train(out / f"learning-{replicate}", LEARNING, rng_seed, EPISODES, ())


# --- the table ------------------------------------------------------------------------------------------------------


def collect(out: Path) -> dict[str, dict[int, dict[str, float]]]:
    """Group -> replicate -> accuracy, parameters, fossils and first training accuracy of every finished piece."""
    from esper_ab.journal.load import load
    from esper_ab.journal.outcomes import held_out_accuracy, outcomes

    found: dict[str, dict[int, dict[str, float]]] = {}
    for piece in sorted(out.glob("*-[0-9]")):
        if not finished(piece):
            continue
        history = load(piece).history
        replicate = int(piece.name.rpartition("-")[2])
        for name, outcome in outcomes(history).items():
            curve = [held_out_accuracy(record) for record in history.runs[name].curve()]
            found.setdefault(outcome.run.group_id, {})[replicate] = {
                "accuracy": outcome.endpoint,
                "params": outcome.params_added,
                "fossilized": outcome.fossilized,
                "pruned": outcome.pruned,
                "first_episode": curve[0],
            }
    return found


def mean_and_half(values: list[float]) -> tuple[float, float]:
    """Mean and half-width of its 95 % t interval."""
    from scipy import stats

    if len(values) < 2:
        return values[0], math.nan
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return float(np.mean(values)), float(half)


def rows(found: dict[str, dict[int, dict[str, float]]]) -> list[dict[str, Any]]:
    """One row per group: endpoint, paired difference to `random`, parameters, seeds."""
    from esper_ab.stats.descriptive.sign_flip import sign_flip
    from esper_ab.stats.paired_difference import paired_difference

    table = []
    for group in (group for group in ORDER if group in found):
        runs = found[group]
        both = sorted(set(runs) & set(found.get("random", {})))
        a = [runs[r]["accuracy"] for r in both]
        b = [found["random"][r]["accuracy"] for r in both]
        row: dict[str, Any] = {"group": group, "runs": len(runs)}
        for key in ("accuracy", "params", "fossilized", "pruned"):
            row[key], row[f"{key}_half"] = mean_and_half([runs[r][key] for r in sorted(runs)])
        if group != "random" and len(both) > 1:
            difference = paired_difference(a, b)
            row |= {"over_random": difference.mean, "low": difference.low, "high": difference.high}
            row["sign_flip_p"] = sign_flip(a, b).p
        table.append(row)
    return table


def markdown(table: list[dict[str, Any]]) -> str:
    """The table for the README, under a line that says how many runs are behind it."""
    runs = sorted({row["runs"] for row in table})
    planned = "" if runs == [REPLICATES] else f" of {REPLICATES} planned"
    lines = [
        f"Means over {' or '.join(map(str, runs))} runs{planned}; ± and [ ]: 95 % t intervals; differences are paired.",
        "",
        "| group | held-out accuracy, % | over `random`, points | parameters added | fossilised | pruned |",
        "|---|---|---|---|---|---|",
    ]
    for row in table:
        gain = f"{row['over_random']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]" if row.get("low") else ""
        lines.append(
            f"| `{row['group']}` | {row['accuracy']:.1f} ± {row['accuracy_half']:.1f} | {gain} "
            f"| {row['params']:,.0f} ± {row['params_half']:,.0f} | {row['fossilized']:.1f} | {row['pruned']:.1f} |"
        )
    return "\n".join(lines)


def write(out: Path) -> None:
    """docs/learning.md, its data, and the table between the marks of the README."""
    found = collect(out)
    table = rows(found)
    schedule = json.loads((out / "schedule.json").read_text())
    text = markdown(table)
    budget = (
        f"{REPLICATES} replicates; {EPISODES} episodes of {STEPS} steps in {N_ENVS} environments per learning run; "
        f"then {EVAL_EPISODES * N_ENVS} evaluation hosts per run, sampled actions; batches of {BATCH_SIZE}; "
        f"rng seeds {FIRST_RNG_SEED} to {FIRST_RNG_SEED + REPLICATES - 1}"
    )
    page = (ROOT / "docs" / "learning.md").read_text()
    facts = {"budget": budget, "table": text, "schedule": "`" + "`, `".join(schedule["schedule"]) + "`"}
    for mark, value in facts.items():
        page = between(page, mark, value)
    (ROOT / "docs" / "learning.md").write_text(page)
    readme = ROOT / "README.md"
    readme.write_text(between(readme.read_text(), "table", text))
    data = {"machine": platform.processor() or platform.machine(), "budget": budget, "rows": table, "runs": found}
    (ROOT / "docs" / "benchmarks").mkdir(exist_ok=True)
    (ROOT / "docs" / "benchmarks" / "learning.json").write_bytes(msgspec.json.format(msgspec.json.encode(data)))
    print(text)


def main() -> None:
    """Parse the command line and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "experiments" / "learn")
    parser.add_argument("--table", action="store_true", help="only write the table")
    arguments = parser.parse_args()
    if not arguments.table:
        run(arguments.out)
    write(arguments.out)


if __name__ == "__main__":
    main()
