"""Finished runs -> docs/evidence/field.md and its data: means with 95 % t intervals, not-worse tests, and speeds."""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from marks import between

from peers.learner import EPISODES, MATCHED, RNG_SEEDS, STEPS
from peers.pieces import FIRST_RNG_SEED, LEARNERS, OURS, SETTINGS, Piece, key
from peers.tasks import TASKS, Task

ROOT = Path(__file__).resolve().parents[2]
DATA, PAGE = ROOT / "docs/evidence/benchmarks/field.json", ROOT / "docs/evidence/field.md"
SPEEDS = DATA.with_name("field_speed.json")
Runs = dict[Piece, dict[str, Any]]


def recorded(file: Path) -> Runs:
    """Return the runs of the data file."""
    return {key(run): run for run in json.loads(file.read_bytes())["runs"]} if file.exists() else {}


def cell(runs: Runs, task: str, learner: str, settings: str, name: str) -> list[float]:
    """Return one number of every run of a cell, by rng seed."""
    found = {rng_seed: run for (t, one, s, rng_seed), run in runs.items() if (t, one, s) == (task, learner, settings)}
    return [found[rng_seed][name] for rng_seed in sorted(found)]


def mean_and_half(values: list[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % t interval; NaN for a single run."""
    from scipy import stats

    if len(values) < 2:
        return values[0], math.nan
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return float(np.mean(values)), float(half)


def difference(a: list[float], b: list[float]) -> tuple[float, float, float]:
    """Return the mean of a minus that of b with its 95 % limits, by Welch's t; NaN limits for a single run.

    Runs of different programs share nothing but a number, so they are no pairs. Where nothing varies, the limits are
    the difference itself.
    """
    from scipy import stats

    mean = float(np.mean(a) - np.mean(b))
    if min(len(a), len(b)) < 2:
        return mean, math.nan, math.nan
    parts = [float(np.var(x, ddof=1)) / len(x) for x in (a, b)]
    if sum(parts) == 0.0:
        return mean, mean, mean
    df = sum(parts) ** 2 / sum(part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True))
    half = float(stats.t.ppf(0.975, df)) * math.sqrt(sum(parts))
    return mean, mean - half, mean + half


def returns_table(runs: Runs) -> str:
    """One row per task, settings and learner."""
    lines = [
        "| task | settings | learner | runs | sampled | greedy |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for task in TASKS:
        for settings in SETTINGS:
            for learner in LEARNERS:
                sampled, greedy = (cell(runs, task.name, learner, settings, name) for name in ("sampled", "greedy"))
                if not sampled:
                    continue
                lines.append(
                    f"| {task.name} | {settings} | {learner} | {len(sampled)} | {_plus_minus(sampled)} "
                    f"| {_plus_minus(greedy)} |"
                )
    return "\n".join(lines)


def _plus_minus(values: list[float]) -> str:
    mean, half = mean_and_half(values)
    return f"{mean:.1f}" if math.isnan(half) else f"{mean:.1f} ± {half:.1f}"


def not_worse(task: Task, low: float) -> str:
    """Say whether a difference whose lower limit is `low` is above minus the margin."""
    return "one run" if math.isnan(low) else "yes" if low > -task.margin else "not shown"


def margins_table(runs: Runs) -> str:
    """One row per task and peer at matched settings: ours, as declared for the task, minus the peer."""
    lines = [
        "| task | margin | ours | against | runs | ours - peer, sampled | not worse |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for task in TASKS:
        own = OURS[task.memory]
        a = cell(runs, task.name, own, "matched", "sampled")
        for peer in (learner for learner in LEARNERS if learner not in OURS.values()):
            b = cell(runs, task.name, peer, "matched", "sampled")
            if not (a and b):
                continue
            mean, low, high = difference(a, b)
            said = f"{mean:+.1f}" + ("" if math.isnan(low) else f" [{low:+.1f}, {high:+.1f}]")
            lines.append(
                f"| {task.name} | {task.margin:g} | {own} | {peer} | {len(a)}, {len(b)} | {said} "
                f"| {not_worse(task, low)} |"
            )
    return "\n".join(lines)


def state(runs: Runs) -> str:
    """Say under which conditions, by which machine, and how many of all runs there are."""
    machines, versions = Counter(run["machine"] for run in runs.values()), {}
    for run in runs.values():
        versions |= run["versions"]
    said = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    planned = len(TASKS) * len(LEARNERS) * len(SETTINGS) * RNG_SEEDS
    return (
        f"{len(runs)} of {planned} runs so far; {STEPS:,} steps of environments, rng seeds from {FIRST_RNG_SEED} on, "
        f"evaluations of {EPISODES} episodes, made on {_named(machines) or 'no machine'}; {said or 'no versions'}.\n\n"
        f"Matched: {MATCHED}."
    )


def _named(machines: Counter[str]) -> str:
    return ", ".join(f"{machine} ({count})" for machine, count in sorted(machines.items()))


def speeds_table(speeds: dict[str, Any]) -> str:
    """One row per task: medians of steps per CPU second, and of the ratios of ours to the peer of its kind."""
    lines = [
        f"Medians of {speeds['rounds']} rounds of {speeds['steps']:,} steps at matched settings, after a warm-up of "
        f"{speeds['warm_up']:,}; one thread of {speeds['machine']}.", "",
        f"| task | {' | '.join(LEARNERS)} | ours / SB3 | ours, LSTM / SB3, LSTM |", "|---" * (len(LEARNERS) + 3) + "|",
    ]  # fmt: skip
    for task, of in speeds["speeds"].items():
        medians = " | ".join(f"{statistics.median(of[learner]):,.0f}" for learner in LEARNERS)
        ratios = " | ".join(_ratio(of[ours], of[peer]) for ours, peer in (("ours", "SB3"), ("ours, LSTM", "SB3, LSTM")))
        lines.append(f"| {task} | {medians} | {ratios} |")
    return "\n".join(lines)


def _ratio(ours: list[float], peer: list[float]) -> str:
    """Say the median ratio of rounds, with the lowest and the highest."""
    ratios = [a / b for a, b in zip(ours, peer, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def write(runs: Runs) -> str:
    """Write the page and the data; return the tables."""
    facts = {"state": state(runs), "margins": margins_table(runs), "returns": returns_table(runs)}
    if SPEEDS.exists():
        facts["speeds"] = speeds_table(json.loads(SPEEDS.read_bytes()))
    page = PAGE.read_text()
    for mark, text in facts.items():
        page = between(page, mark, text)
    PAGE.write_text(page)
    lines = ",\n".join(json.dumps(runs[piece]) for piece in sorted(runs))
    DATA.write_text(f'{{"runs": [\n{lines}\n]}}\n')
    return "\n\n".join(facts.values())
