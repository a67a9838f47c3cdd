"""Finished pieces -> the table, its data, and what the pages say of them."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from experiment_dirs import finished

from learning.pieces import BUDGETS, FIRST_RNG_SEED, FIXED_BUDGET, MODES, REPLICATES

Run = dict[str, Any]
Found = dict[tuple[str, str], dict[int, Run]]  # (group, budget or "") -> replicate -> its numbers

_LEAST_PAIRS = 3  # of a row of differences; the interval of two says nothing
KINDS = {"start": "", "zeros": ", start 0", "search": "", "fixed": ""}
ORDER = ("wait", "random", "heuristic", "untrained", "schedule", "search", "shaped", "simplified", "sparse", "minimal")
PASSED = 80.0  # percent, as in the goals
RESOLVED = 2.0  # points, the default margin
WINDOW = 6  # episodes: means of fewer differ by noise


def recorded(runs: list[dict[str, Any]]) -> Found:
    """The runs of a data file, as `collect` has them: what was measured elsewhere, or earlier, is not lost."""
    found: Found = {}
    for run in runs:
        rest = {key: value for key, value in run.items() if key not in ("group", "budget", "replicate")}
        found.setdefault((run["group"], run["budget"]), {})[run["replicate"]] = rest
    return found


def pieces_of(found: Found) -> frozenset[str]:
    """Names of the pieces that these runs are from."""
    names = set()
    for (group, budget), runs in found.items():
        kind = "zeros" if group.endswith(KINDS["zeros"]) else "search" if group == "search" else "start"
        if not budget:
            kind, budget = "fixed", FIXED_BUDGET.name
        names |= {f"{kind}-{budget}-{replicate}" for replicate in runs}
    return frozenset(names)


def collect(out: Path) -> Found:
    """Numbers of every run of every finished piece."""
    from esper_ab.journal.load import load
    from esper_ab.journal.outcomes import mean_outcome, outcomes

    found: Found = {}
    for piece in sorted(out.glob("*-*-*")):
        kind, budget, replicate = piece.name.split("-")[:3]
        if not piece.is_dir() or not finished(piece):
            continue
        history = load(piece).history
        for name, outcome in outcomes(history).items():
            if kind == "search" and outcome.run.group_id != kind:
                continue  # its company: an experiment has two groups at least
            group = outcome.run.group_id + KINDS[kind]
            records = history.runs[name].curve()
            curve = [mean_outcome(record) for record in records]
            row = found.setdefault((group, "" if kind == "fixed" else budget), {})
            row[int(replicate)] = {
                "accuracy": outcome.evaluated,
                "greedy": outcome.greedy,
                "params": outcome.measures["params_added"],
                "fossilized": outcome.measures["fossilized"],
                "pruned": outcome.measures["pruned"],
                "curve": [None if value is None else round(value, 2) for value in curve],
                "rewards": [float(np.mean([env.reward_sum for env in record.envs]).round(4)) for record in records],
                "machine": history.started.machine["processor"],
                "kernel": history.plan.experiment.arithmetic.kernel,
                "kernel_build": history.plan.experiment.arithmetic.kernel_build,
            }
    return found


def machines(found: Found) -> str:
    """The processors of all runs, with how many each did."""
    counts = Counter(run.get("machine", "x86-64, not recorded") for runs in found.values() for run in runs.values())
    told = ", ".join(f"{machine} ({count})" for machine, count in sorted(counts.items()))
    return f"Processors of the virtual machines, with the number of runs that each did: {told}."


def mean_and_half(values: list[float]) -> tuple[float, float]:
    """Mean and half-width of its 95 % t interval."""
    from scipy import stats

    if len(values) < 2:
        return values[0], math.nan
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return float(np.mean(values)), float(half)


def rows(found: Found) -> list[dict[str, Any]]:
    """One row per group and budget: accuracies, paired difference to `random`, parameters, seeds, spread of runs."""
    from esper_ab.stats.t_tests import paired_difference

    table = []
    baseline = found.get(("random", ""), {})
    for (group, budget), runs in sorted(found.items(), key=_place):
        row: dict[str, Any] = {"group": group, "budget": budget, "runs": len(runs)}
        for key in ("accuracy", "greedy", "params", "fossilized", "pruned"):
            values = [run[key] for _, run in sorted(runs.items()) if run[key] is not None]
            if values:
                row[key], row[f"{key}_half"] = mean_and_half(values)
        row["lowest"] = min(run["accuracy"] for run in runs.values())
        both = sorted(set(runs) & set(baseline))
        if group != "random" and len(both) > 1:
            difference = paired_difference(
                [runs[r]["accuracy"] for r in both], [baseline[r]["accuracy"] for r in both]
            )
            row |= {"over_random": difference.mean, "low": difference.low, "high": difference.high}
        table.append(row)
    return table


def _place(item: tuple[tuple[str, str], Any]) -> tuple[int, int, str]:
    group, budget = item[0]
    budgets = ["", *(one.name for one in BUDGETS)]
    first = group.partition(",")[0]
    return budgets.index(budget), ORDER.index(first) + len(ORDER) * (first != group), group


def markdown(table: list[dict[str, Any]]) -> str:
    """The table for the page."""
    lines = [
        "Means over runs; ± and [ ]: 95 % t intervals over runs; differences are paired by seed.",
        "",
        "| group | budget | runs | held-out accuracy, % | greedy, % | lowest run | over `random`, points "
        "| parameters added | fossilised | pruned |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in table:
        name, comma, rest = row["group"].partition(",")
        gain = f"{row['over_random']:+.1f} [{row['low']:+.1f}, {row['high']:+.1f}]" if row.get("low") else ""
        greedy = _plus_minus(row, "greedy") if "greedy" in row else ""
        lines.append(
            f"| `{name}`{comma}{rest} | {row['budget'].replace('x', ' x ')} | {row['runs']} "
            f"| {_plus_minus(row, 'accuracy')} | {greedy} | {row['lowest']:.1f} | {gain} "
            f"| {row['params']:,.0f} | {row['fossilized']:.1f} | {row['pruned']:.1f} |"
        )
    return "\n".join(lines)


def _plus_minus(row: dict[str, Any], key: str) -> str:
    half = row[f"{key}_half"]
    return f"{row[key]:.1f}" + ("" if math.isnan(half) else f" ± {half:.1f}")


def state(found: Found) -> str:
    """Per kind of row: which budgets are measured, in how many replicates, and which are still to come."""
    parts = []
    kinds = {"modes": MODES, "`search`": ("search",), "start 0": tuple(f"{mode}{KINDS['zeros']}" for mode in MODES)}
    for words, groups in kinds.items():
        done = {
            one.name.replace("x", " x "): max(len(found.get((group, one.name), {})) for group in groups)
            for one in BUDGETS
        }
        measured = [f"{name} in {count} of {REPLICATES}" for name, count in done.items() if count]
        missing = [name for name, count in done.items() if not count]
        to_come = f", still to come {', '.join(missing)}" if missing else ""
        parts.append(f"- {words}: {', '.join(measured) or 'nothing'}{to_come}")
    return "\n".join(("Measured, episodes x environments in replicates:", "", *parts))


def budget_text(n_eval: int) -> str:
    """The conditions of all rows."""
    return (
        f"Rng seeds {FIRST_RNG_SEED} to {FIRST_RNG_SEED + REPLICATES - 1}, one per seed, never used before; "
        f"episodes of 25 steps; {n_eval} evaluation episodes; batches of 64; everything else is the default"
    )


def curves(found: Found) -> str:
    """Hosts after which the mean training curve of each learning group first reached PASSED, as a list."""
    lines = []
    for (group, budget), runs in sorted(found.items(), key=_place):
        if not budget or group == "search":
            continue
        mean = np.mean([run["curve"] for run in runs.values()], axis=0)
        at = np.flatnonzero(mean >= PASSED)
        n_envs = int(budget.partition("x")[2])
        first = f"first at {PASSED:.0f} % after {n_envs * (at[0] + 1)} hosts" if len(at) else f"never at {PASSED:.0f} %"
        lines.append(f"- `{group}`, {budget.replace('x', ' x ')}: {mean[0]:.0f} % → {mean[-1]:.0f} %, {first}")
    return "\n".join(lines) or "None yet."


def falls(found: Found) -> str:
    """Long runs whose last tenth of episodes is RESOLVED points or more below their best on average, as a list."""
    lines = []
    for (group, budget), runs in sorted(found.items(), key=_place):
        for replicate, run in sorted(runs.items()):
            window = len(run["curve"]) // 10
            if group == "search" or window < WINDOW:
                continue
            tenths = np.convolve(run["curve"], np.full(window, 1 / window), "valid")
            best = int(np.argmax(tenths))
            if tenths[best] - tenths[-1] < RESOLVED:
                continue
            said = f"- `{group}`, {budget.replace('x', ' x ')}, seed {replicate}: "
            said += f"{tenths[best]:.1f} % → {tenths[-1]:.1f} %"
            if rewards := run.get("rewards"):
                pays = np.convolve(rewards, np.full(window, 1 / window), "valid")
                said += f"; its own reward, per episode: {pays[best]:.3f} → {pays[-1]:.3f}"
            lines.append(said)
    return "\n".join(lines) or "None."


def differences(found: Found) -> str:
    """Per budget, paired by replicate: the trained policies against the untrained one, each mode against the schedule,
    against the search and against itself from a uniform start, and each pair of modes, from either start.
    """
    lines = [
        f"| budget | difference | pairs | sampled, points | its SD | pairs for {RESOLVED:g} points | greedy, points "
        "| its SD |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for budget in (one.name for one in BUDGETS):
        modes = {mode: found[mode, budget] for mode in MODES if (mode, budget) in found}
        sides = [("all modes", list(modes.values()), "untrained", [found.get(("untrained", ""), {})])]
        plans = {"schedule": found.get(("schedule", ""), {}), "search": found.get(("search", budget), {})}
        sides += [(mode, [modes[mode]], plan, [of_plan]) for plan, of_plan in plans.items() for mode in modes]
        sides += [(a, [modes[a]], b, [modes[b]]) for a, b in combinations(modes, 2)]
        zeros = {name: found.get((name, budget), {}) for name in (f"{mode}{KINDS['zeros']}" for mode in modes)}
        sides += [(a, [modes[a]], b, [zeros[b]]) for a, b in zip(modes, zeros, strict=True)]
        sides += [(a, [zeros[a]], b, [zeros[b]]) for a, b in combinations(zeros, 2)]
        for name, of_a, other, of_b in sides:
            both = sorted(set.intersection(*(set(runs) for runs in (*of_a, *of_b)))) if of_a else []
            if len(both) < _LEAST_PAIRS:
                continue
            cells = []
            for key in ("accuracy", "greedy"):
                if any(runs[i][key] is None for runs in (*of_a, *of_b) for i in both):
                    cells += ["", ""]  # a fixed plan has no actions that are more probable than others
                    continue
                d = [float(np.mean([r[i][key] for r in of_a]) - np.mean([r[i][key] for r in of_b])) for i in both]
                (mean, half), sd = mean_and_half(d), float(np.std(d, ddof=1))
                cells += [f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]", f"{sd:.1f}"]
                if key == "accuracy":
                    cells.append(str(pairs_needed(sd)))
            head = (budget.replace("x", " x "), f"{name} - {other}", str(len(both)))
            lines.append(f"| {' | '.join((*head, *cells))} |")
    return "\n".join(lines)


def pairs_needed(sd: float) -> int:
    """Pairs with which a two-sided paired t-test at 0.05 finds a mean of RESOLVED points with a power of 0.8.

    By the normal approximation, sum of the quantiles squared times the variance; two more for the t.
    """
    from scipy import stats

    return math.ceil(((stats.norm.isf(0.025) + stats.norm.isf(0.2)) * sd / RESOLVED) ** 2) + 2
