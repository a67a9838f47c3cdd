"""Variances and differences by `--outcome-over`, from stored runs, for docs/evidence/statistics-on-training.md.

`--add EXPERIMENT…` first stores the runs of finished experiments in docs/evidence/benchmarks/windows.json: their
outcome by evaluation, and their curve. Tables are written from what is stored, in seconds; nothing is trained.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.markdown import table

from esper_ab.contracts.outcome_window import WINDOWS, in_window
from esper_ab.design.power import replicates_needed, sd_of_differences
from esper_ab.design.scheme import PowerQuestion, generator_of
from esper_ab.journal.fold import History
from esper_ab.journal.load import load
from esper_ab.journal.outcomes import mean_known, outcome_of
from esper_ab.stats.least_pairs import LEAST_PAIRS

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "docs" / "evidence" / "benchmarks"
STORED = BENCHMARKS / "windows.json"
CURVES = BENCHMARKS / "curves.json"  # of runs without an evaluation
PAGE = ROOT / "docs" / "evidence" / "statistics-on-training.md"
BEGIN = "<!-- windows tables -->\n"
END = "<!-- /windows tables -->"
EFFECTS = (0.5, 1.0)  # in SDs of the runs' evaluations
PARTS = ("evaluation", *WINDOWS)
LEAST_SPREAD = 1e-3  # SD of outcomes, relative to the largest one

_Number = TypeVar("_Number", float, int | None)
Cell = dict[str, Any]  # runs of one group: task, setup, group, seeds, evaluations, curves


def main() -> None:
    """Add experiments, if any are named, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--add", nargs="+", type=Path, default=[], metavar="EXPERIMENT")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    for directory in parser.parse_args().add:
        add(stored["cells"], load(directory).history)
    write_stored(stored)
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tail = rest.partition(END)[2]
    tables = "\n".join([*runs_table(stored["cells"]), "", *couples_table(stored["cells"]), "", *points_table()])
    PAGE.write_text(f"{head}{BEGIN}{tables}\n{END}{tail}", encoding="utf-8")


def add(cells: list[Cell], history: History) -> None:
    """Store the finished runs of every group; runs of the same task, setup and group are replaced."""
    experiment = history.plan.experiment
    setup = f"{experiment.episodes} x {experiment.n_envs}"
    for group in history.groups:
        runs = [run for run in history.of_group(group) if outcome_of(run, "evaluation") is not None]
        key = {"task": experiment.task_title, "setup": setup, "group": group}
        cell = {
            **key,
            "seeds": [run.ref.replicate for run in runs],
            "evaluations": [rounded(outcome_of(run, "evaluation")) for run in runs],
            "curves": [[rounded(value) for value in run.columns.of("outcome")] for run in runs],
        }
        cells[:] = [other for other in cells if any(other[name] != value for name, value in key.items())]
        cells.append(cell)


def rounded(value: float | None) -> float:
    """Return an outcome as it is stored."""
    assert value is not None
    return round(value, 2)


def write_stored(stored: dict[str, Any]) -> None:
    """Write the stored runs, with a line for each curve."""
    cells = []
    for cell in stored["cells"]:
        head = json.dumps({name: value for name, value in cell.items() if name != "curves"})
        curves = ",\n".join(f"  {json.dumps(curve)}" for curve in cell["curves"])
        cells.append(f'{head[:-1]}, "curves": [\n{curves}\n]}}')
    lines = ",\n".join(cells)
    STORED.write_text(f'{{"source": {json.dumps(stored["source"])}, "cells": [\n{lines}\n]}}\n', encoding="utf-8")


def outcomes(cell: Cell, part: str) -> list[float]:
    """Return the outcome of every run over one part of it."""
    if part == "evaluation":
        return list(cell["evaluations"])
    return [mean_of(curve, part) for curve in cell["curves"]]


def mean_of(curve: Sequence[float], part: str) -> float:
    """Return the outcome of a curve over a window of it."""
    mean = mean_known(in_window(curve, part))
    assert mean is not None
    return mean


def by_setup(cells: Sequence[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """Return the groups of every task and setup."""
    setups = defaultdict(list)
    for cell in cells:
        setups[cell["task"], cell["setup"]].append(cell)
    return setups


def pairs_needed(ratio: float, effect: float) -> int | None:
    """Return the uncorrelated pairs that find an effect with 80 % power, if the variance is `ratio` times as large."""
    if ratio == 0.0:
        return LEAST_PAIRS
    question = PowerQuestion(margin=effect, positions_matter=False)
    sd = sd_of_differences(ratio**0.5, 0.0)
    return replicates_needed(sd, None, question, generator_of(question)).replicates


def listed(values: Iterable[_Number], form: Callable[[_Number], str]) -> str:
    """Return numbers for the windows, separated by slashes."""
    return " / ".join(map(form, values))


def varies(values: Sequence[float]) -> bool:
    """Whether outcomes differ by more than a single episode of a run at the cap of its task can make them."""
    return statistics.stdev(values) > LEAST_SPREAD * max(map(abs, values))


def variance_ratio(cell: Cell, part: str) -> float:
    """Return the variance of a group's runs over one part, relative to that by the evaluation."""
    return statistics.variance(outcomes(cell, part)) / statistics.variance(outcomes(cell, "evaluation"))


def runs_table(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield the variance of runs within a group by part, and the pairs that follow from it."""
    rows = []
    for (task, setup), groups in by_setup(cells).items():
        means = [statistics.fmean(statistics.fmean(outcomes(cell, part)) for cell in groups) for part in PARTS]
        sd = statistics.median(statistics.stdev(outcomes(cell, "evaluation")) for cell in groups)
        spread = [cell for cell in groups if varies(outcomes(cell, "evaluation"))]
        ratios = [statistics.median(variance_ratio(cell, part) for cell in spread) for part in PARTS]
        runs = sum(len(cell["seeds"]) for cell in groups)
        pairs = [listed([pairs_needed(ratio, effect) for ratio in ratios], str) for effect in EFFECTS]
        rows.append(
            (
                task,
                setup,
                runs,
                listed(means, "{:.4g}".format),
                f"{sd:.3g}",
                listed(ratios[1:], "{:.2f}".format),
                *pairs,
            )
        )
    yield from table(
        "task | episodes | runs | mean: evaluation / tenth / third / all | SD, evaluation | "
        "variance, evaluation = 1, median of groups: tenth / third / all | "
        "pairs for 0.5 SD: evaluation / tenth / third / all | for 1 SD",
        rows,
    )


def couples_table(cells: Sequence[Cell]) -> Iterator[str]:
    """Yield how the paired differences of two groups change with the part that counts."""
    rows = []
    for (task, setup), groups in by_setup(cells).items():
        ratios = defaultdict(list)
        sizes = defaultdict(list)
        same_signs = dict.fromkeys(PARTS, 0)
        couples = [couple for couple in combinations(groups, 2) if couple[0]["seeds"] == couple[1]["seeds"]]
        for a, b in couples:
            variance, difference = {}, {}
            for part in PARTS:
                pairs = [x - y for x, y in zip(outcomes(a, part), outcomes(b, part), strict=True)]
                variance[part], difference[part] = statistics.variance(pairs), statistics.fmean(pairs)
            for part in PARTS:
                ratios[part].append(variance[part] / variance["evaluation"])
                sizes[part].append(abs(difference[part]))
                same_signs[part] += difference[part] * difference["evaluation"] > 0.0
        if couples:
            medians = listed([statistics.median(ratios[part]) for part in WINDOWS], "{:.2f}".format)
            means = listed([statistics.fmean(sizes[part]) for part in PARTS], "{:.3g}".format)
            signs = listed([same_signs[part] for part in WINDOWS], str)
            rows.append((task, setup, len(couples), medians, means, signs))
    yield from table(
        "task | episodes | couples of groups | variance of paired differences, evaluation = 1, median: tenth / third / "
        "all | mean size of the difference: evaluation / tenth / third / all | same sign as by evaluation",
        rows,
    )


def points_table() -> Iterator[str]:
    """Yield variances for runs of which only ten points of training are stored; the last point is the last tenth."""
    rows = []
    for task in json.loads(CURVES.read_text(encoding="utf-8"))["curves"]:
        for learner, curves in task["curves"].items():
            values = {part: [mean_of(curve, part) for curve in curves] for part in WINDOWS}
            means = listed([statistics.fmean(values[part]) for part in WINDOWS], "{:.4g}".format)
            variances = {part: statistics.variance(values[part]) for part in WINDOWS}
            row = [task["task"], learner, len(curves), means]
            if not varies(values["last-tenth"]):
                rows.append((*row, "no spread in the last point", "-", "-"))
                continue
            ratios = [variances[part] / variances["last-tenth"] for part in WINDOWS]
            pairs = [listed([pairs_needed(ratio, effect) for ratio in ratios], str) for effect in EFFECTS]
            rows.append((*row, listed(ratios[1:], "{:.2f}".format), *pairs))
    yield from table(
        "task | PPO | runs | mean: last point / last four / all | variance, last point = 1: last four / all | "
        "pairs for 0.5 SD: last point / last four / all | for 1 SD",
        rows,
    )


if __name__ == "__main__":
    main()
