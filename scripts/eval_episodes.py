"""Measures evaluation noise and episode cost, and the gain from the number of episodes that `auto` chooses.

Calibrations are experiments on rng seeds that nothing else uses, evaluated on many episodes: the variances and costs
that `--eval-episodes auto` plans with. Then, on other rng seeds, one comparison with few episodes and with the number
chosen.

    scripts/eval_episodes [--out FOLDER]      run what is missing in FOLDER, one process at a time; then write
                                           esper_ab/settings/eval_episodes.json, benchmarks/eval-episodes.json and
                                           the table of docs/evidence/statistics-on-training.md
    scripts/eval_episodes --calibrations      only the calibrations and the package's file
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from benchmarks.marks import between
from scipy import stats

from esper_ab.analysis.calibration import known_from_pairs, noise_of_pairs, residual_sd
from esper_ab.analysis.observe import pairs_of
from esper_ab.contracts.measures import greedy_episodes
from esper_ab.design.power import PowerQuestion
from esper_ab.design.power_text import EvalEpisodesAnswer, answer
from esper_ab.journal.file import JOURNAL_NAME, read
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.settings.eval_episodes import FILE, EvaluationNoise, Shipped
from esper_ab.stats.variances import sd_limits

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs/evidence/statistics-on-training.md", ROOT / "docs/evidence/benchmarks/eval-episodes.json"
MARK = "eval episodes table"
GROUPS = ("shaped", "simplified")
MARGIN = 5.0  # points, of the pairs that `power` is asked for
FEW = 4  # episodes of the comparison with few: one episode, which was the default before


@dataclass(frozen=True)
class Part:
    """One experiment: a budget, its replicates and episodes, and its own rng seed."""

    task: str
    episodes: int
    n_envs: int
    replicates: int
    eval_episodes: int
    rng_seed: int

    @property
    def name(self) -> str:
        return f"{self.task}-{self.episodes}x{self.n_envs}-{self.replicates}-{self.eval_episodes}-{self.rng_seed}"


CALIBRATIONS = (Part("digits", 3, 4, 12, 32, 7100), Part("digits", 12, 8, 8, 32, 7101))
# The first budget again, with few episodes and with the chosen number (0), on rng seeds of their own.
COMPARED = (Part("digits", 3, 4, 16, FEW, 7110), Part("digits", 3, 4, 16, 0, 7111))


def run(part: Part, folder: Path) -> History:
    """Return the history of a finished experiment; read it from `folder` if the experiment is there."""
    if not (folder / part.name / "verdict.json").exists():
        print(f"{part.name} …", flush=True)
        command = [
            sys.executable, "-m", "esper_ab.launch", "--groups", ",".join(GROUPS), "--task", part.task,
            "--episodes", str(part.episodes), "--n-envs", str(part.n_envs), "--seeds", str(part.replicates),
            "--eval-episodes", str(part.eval_episodes), "--rng-seed", str(part.rng_seed), "--devices", "cpu:0",
            "--placement", "sequence", "--no-early-stop", "--no-telemetry", "--quiet", "--json",
            "--output-dir", str(folder), "--name", part.name,
        ]  # fmt: skip
        there = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=there)
    history = load(folder / part.name).history
    if history.ended is None or history.ended.status != "finished":
        raise SystemExit(f"{folder / part.name} is not finished; remove it and call again")
    return history


def calibration(part: Part, folder: Path) -> Shipped:
    """Return a calibration's findings with their provenance."""
    history = run(part, folder)
    noise = noise_of_pairs(history)
    if noise is None:
        raise SystemExit(f"{part.name}: episodes do not differ")
    journal = read(folder / part.name / JOURNAL_NAME)
    next(journal)
    started = history.started
    return Shipped(
        task=part.task, slots=history.plan.experiment.slots, steps=history.plan.experiment.steps,
        groups=" - ".join(GROUPS), noise=_rounded(noise), rng_seed=part.rng_seed,
        kernel=history.plan.experiment.arithmetic.kernel,
        machine=f"{started.machine['processor']}, {started.machine['cores']} cores",
        date=journal.wall_time[:10],
    )  # fmt: skip


def _rounded(noise: EvaluationNoise) -> EvaluationNoise:
    """Return the values rounded to five digits, so that the file is readable."""
    tree = json.loads(msgspec.json.encode(noise), parse_float=lambda text: float(f"{float(text):.5g}"))
    return msgspec.convert(tree, type=EvaluationNoise)


def compared(part: Part, folder: Path) -> dict[str, Any]:
    """Return one comparison in numbers: spread of its pairs, their cost, and the answer of `power`."""
    history = run(part, folder)
    noise, contrast = noise_of_pairs(history), history.design.comparisons[0]
    if noise is None:
        raise SystemExit(f"{part.name}: episodes do not differ")
    sd, df = residual_sd(history.design, pairs_of(history, contrast))
    question = PowerQuestion(margin=MARGIN)
    found = answer(known_from_pairs(history, part.name), 10, question, (10,))
    greedy = greedy_episodes(part.eval_episodes, part.n_envs)
    return {
        "part": part.name, "eval_episodes": part.eval_episodes, "pairs": len(pairs_of(history, contrast)), "sd": sd,
        "df": df, "sd_limits": sd_limits(sd, df, 0.8),
        "grown_per_run": part.episodes * part.n_envs + part.eval_episodes + greedy, "share": noise.components.share,
        "cost_share": noise.cost_share, "next_eval_episodes": noise.next_eval_episodes,
        "needed": found.tables[0].needed.replicates, "best": found.eval_episodes,
    }  # fmt: skip


def gain(few: dict[str, Any], many: dict[str, Any], noise: EvaluationNoise) -> dict[str, Any]:
    """Return pairs and compute for the same precision with the chosen episodes, as multiples of those with few.

    A run's cost is computed from its episodes in the calibration, because wall time depends on the machine's other
    work.
    """
    ratio, run = (
        (many["sd"] / few["sd"]) ** 2,
        noise.cost_times(many["eval_episodes"]) / noise.cost_times(few["eval_episodes"]),
    )
    limits = [ratio / float(stats.f.isf(tail, many["df"], few["df"])) for tail in (0.1, 0.9)]
    variance = noise.components.variance(many["eval_episodes"]) / noise.components.variance(few["eval_episodes"])
    return {"pairs": ratio, "limits": limits, "run": run, "compute": ratio * run, "predicted": variance}


def calibration_table(found: list[Shipped]) -> str:
    """Return a Markdown table with one row per calibration."""
    lines = [
        "| task, training episodes | pairs | SD of policies, points | SD of an episode | evaluation noise with 4 "
        "episodes, % | s per episode, training / evaluation | episodes of `auto` | evaluation noise then, % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found:
        noise, part = one.noise, one.noise.components
        best = noise.next_eval_episodes
        policy = f"{math.sqrt(part.policy):.1f}" if part.policy > 0.0 else "not detected"
        lines.append(
            f"| {one.task}, {noise.episodes} x {noise.n_envs} | {part.runs} | {policy} | {math.sqrt(part.episode):.1f} "
            f"| {_share(noise, FEW)} | {noise.training_episode_s:.3f} / {noise.evaluation_episode_s:.3f} | {best} "
            f"| {_share(noise, best)} |"
        )
    return "\n".join(lines)


def _share(noise: EvaluationNoise, eval_episodes: int) -> str:
    return f"{100 * noise.components.episode / eval_episodes / noise.components.variance(eval_episodes):.0f}"


def compared_text(few: dict[str, Any], many: dict[str, Any], found: dict[str, Any]) -> str:
    """Return Markdown: both comparisons, the gain, and whether the target was met."""
    lines = [
        "| episodes | pairs | SD of the differences (80 % limits) | episodes grown per run | evaluation noise, % "
        f"| pairs for {MARGIN:g} points |",
        "|---|---|---|---|---|---|",
    ]
    for one in (few, many):
        low, high = one["sd_limits"]
        lines.append(
            f"| {one['eval_episodes']} | {one['pairs']} | {one['sd']:.2f} ({low:.2f} to {high:.2f}) | "
            f"{one['grown_per_run']} | {100 * one['share']:.0f} | {one['needed']} |"
        )
    best = few["best"]
    met = found["pairs"] <= 2 / 3 and found["compute"] <= 1.0
    low, high = found["limits"]
    told = (
        f"Measured: {found['pairs']:.2f} times the pairs for the same precision (80 % limits {low:.2f} to {high:.2f}; "
        f"the calibration predicts {found['predicted']:.2f}), at {found['run']:.2f} times the cost of a run, so "
        f"{found['compute']:.2f} times the compute. The target, two thirds of the pairs at no more compute, is "
        f"{'met' if met else 'missed'} by this estimate."
    )
    if isinstance(best, EvalEpisodesAnswer) and best.needed.replicates:
        told += (
            f" `power`, asked after the comparison with {best.eval_episodes} episodes alone, said: "
            f"{best.needed.replicates} pairs with --eval-episodes {best.best} in the place of {few['needed']}, at "
            f"{best.needed.replicates * best.cost_times / few['needed']:.2f} times the compute."
        )
    return "\n".join([*lines, "", told])


def write(found: list[Shipped]) -> None:
    """Write the file that the package plans with."""
    shown = msgspec.json.format(msgspec.json.encode(found), indent=1)
    (ROOT / "esper_ab" / "settings" / FILE).write_bytes(shown + b"\n")


def main() -> None:
    """Parse the command line, run missing experiments, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "experiments" / "eval_episodes", help="experiment directories"
    )
    parser.add_argument("--calibrations", action="store_true", help="skip the comparison")
    asked = parser.parse_args()
    folder = asked.out.resolve()
    found = [calibration(part, folder) for part in CALIBRATIONS]
    write(found)
    print(calibration_table(found))
    if asked.calibrations:
        return
    few, many = COMPARED
    chosen = Part(**{**vars(many), "eval_episodes": found[0].noise.next_eval_episodes})
    rows = [compared(few, folder), compared(chosen, folder)]
    gained = gain(*rows, found[0].noise)
    told = compared_text(*rows, gained)
    text = f"{calibration_table(found)}\n\n{told}"
    PAGE.write_text(between(PAGE.read_text(encoding="utf-8"), MARK, text), encoding="utf-8")
    data = {"calibrations": found, "compared": rows, "gain": gained, "margin": MARGIN}
    DATA.write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n")
    print(told)


if __name__ == "__main__":
    main()
