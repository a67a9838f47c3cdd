"""Simulate how often differences on items are falsely claimed and how often intervals miss the true difference.

    scripts/item_rates           simulate (minutes); write docs/evidence/benchmarks/item_rates.json and the page
    scripts/item_rates --page    write the tables of docs/evidence/item-rates.md from the stored numbers

The rules are those of tests/simulation/items.py, which are written anew and compared with the package
(tests/statistics/test_item_rates.py). A rate two standard errors above 5 % is simulated anew, five times as long.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from simulation.items import Law, Layout, Sample, draw, exact, tests  # noqa: E402

NUMBERS = ROOT / "docs" / "evidence" / "benchmarks" / "item_rates.json"
PAGE = ROOT / "docs" / "evidence" / "item-rates.md"
RNG_SEED = 64
EXPERIMENTS, EXPERIMENTS_EXACT = 2_000, 10_000
AGAIN = 5  # times as many
BLOCK = 500_000  # scores of a group at once
EFFECT = 5.0  # points
RUNS = (1, 3, 6, 10)
RAGGED = (1, 2, 3, 5, 8, 12, 20, 30, 40, 50)
LAYOUTS = {
    "20": Layout(sizes=(1,) * 20),
    "200": Layout(sizes=(1,) * 200),
    "2,000": Layout(sizes=(1,) * 2_000),
    "200 in clusters of 20": Layout(sizes=(20,) * 10),
    "200 in clusters of 10": Layout(sizes=(10,) * 20),
    "1,000 in clusters of 50": Layout(sizes=(50,) * 20),
    "342 in 20 clusters of 1 to 50": Layout(sizes=RAGGED * 2),
    "684 in 40 clusters of 1 to 50": Layout(sizes=RAGGED * 4),
    "300: 8 clusters of 25, 100 alone": Layout(sizes=(25,) * 8 + (1,) * 100),
    "400: one cluster of 100, 60 of 5": Layout(sizes=(100, *(5,) * 60)),
    "200 in 4 tasks": Layout(sizes=(1,) * 200, tasks=4),
    "400 in 4 tasks, clusters of 5": Layout(sizes=(5,) * 80, tasks=4),
    "200 others in each group": Layout(sizes=(1,) * 200, shared=False),
    "200 others, clusters of 10": Layout(sizes=(10,) * 20, shared=False),
}
EXACT = {f"{items:,}": Layout(sizes=(1,) * items) for items in (20, 50, 200, 2_000)}


@dataclass(frozen=True)
class Rate:
    """How many of the `experiments` erred, and the law with which they did."""

    errors: int
    experiments: int
    law: Law

    @property
    def percent(self) -> float:
        return 100.0 * self.errors / self.experiments

    @property
    def suspicious(self) -> bool:
        return self.percent > 5.0 + 200.0 * math.sqrt(0.05 * 0.95 / self.experiments)


def laws(runs: int) -> Iterator[Law]:
    """Yield the laws of one row: without a difference, and with one of EFFECT points."""
    for binary, interaction, points in itertools.product((True, False), (0.0, 0.6), (0.0, 1.0, 3.0)):
        law = Law(runs=runs, binary=binary, points=points, interaction=interaction)
        yield law
        if points and runs > 1:
            yield Law(**{**asdict(law), "paired": True})
        if (points, interaction) in ((1.0, 0.0), (3.0, 0.6)):
            yield Law(**{**asdict(law), "effect": EFFECT})


def simulate(name: str, layout: Layout, law: Law, experiments: int, *, anew: bool = False) -> dict[str, int]:
    """Count what errs: by level, intervals that miss the difference of new runs, or of these checkpoints."""
    key = zlib.crc32(f"{name} {law}".encode())
    rng = np.random.default_rng([RNG_SEED, key, anew])
    counted: dict[str, int] = {}
    block = max(1, BLOCK // (law.runs * layout.items))
    for begin in range(0, experiments, block):
        sample = draw(rng, min(block, experiments - begin), layout, law)
        for error, count in _errors(sample, layout, law).items():
            counted[error] = counted.get(error, 0) + count
    return counted


def _errors(sample: Sample, layout: Layout, law: Law) -> dict[str, int]:
    tests_by_level = tests(sample.a, sample.b, layout, paired=law.paired)
    errors = {}
    for level, test in tests_by_level.items():
        true_difference = sample.true_here if level in ("checkpoints", "cluster sums") else sample.true
        errors[level] = int(test.misses(true_difference).sum())
        errors[f"{level} claimed"] = int(test.misses(0.0).sum())
    errors["these runs of new"] = int(tests_by_level["checkpoints"].misses(sample.true).sum())
    if law.binary and law.runs == 1 and layout.shared and layout.items == len(layout.sizes):
        is_claimed, is_missed = exact(sample.a[:, 0], sample.b[:, 0], sample.true_here)
        errors["exact"] = int(is_missed.sum())
        errors["exact claimed"] = int(is_claimed.sum())
    return errors


def worst(name: str, layout: Layout, chosen_laws: list[Law], level: str, experiments: int) -> dict[str, Any]:
    """Return the largest rate at `level` of the laws, after those that are suspicious were simulated anew."""
    rates = []
    for law in chosen_laws:
        rate = Rate(_counted(name, layout, law, experiments)[level], experiments, law)
        if rate.suspicious:
            repeated_experiments = AGAIN * experiments
            rate = Rate(_counted(name, layout, law, repeated_experiments, anew=True)[level], repeated_experiments, law)
        rates.append(rate)
    largest_rate = max(rates, key=lambda rate: rate.percent)
    return {
        "percent": round(largest_rate.percent, 2),
        "experiments": largest_rate.experiments,
        "law": asdict(largest_rate.law),
    }


_CACHE: dict[tuple[object, ...], dict[str, int]] = {}


def _counted(name: str, layout: Layout, law: Law, experiments: int, *, anew: bool = False) -> dict[str, int]:
    key = (name, law, experiments, anew)
    if key not in _CACHE:
        _CACHE[key] = simulate(name, layout, law, experiments, anew=anew)
    return _CACHE[key]


def row(name: str, layout: Layout, runs: int) -> dict[str, Any]:
    """Return the rates of one layout with so many runs in each group."""
    all_laws = list(laws(runs))
    null_laws = [law for law in all_laws if not law.effect]
    levels: dict[str, Any] = {"items": name, "runs": runs, "effective": round(layout.effective, 1)}
    equal_laws = [law for law in null_laws if not law.points]  # checkpoints do not differ
    levels["checkpoints"] = {
        "false": worst(name, layout, equal_laws, "checkpoints", EXPERIMENTS),
        "missed": worst(name, layout, all_laws, "checkpoints", EXPERIMENTS),
    }
    if layout.tasks == 1 and layout.shared:
        levels["checkpoints"]["cluster sums"] = _plain(name, layout, all_laws, "cluster sums")
    if runs >= 3:
        levels["trainings"] = {
            "false": worst(name, layout, null_laws, "trainings", EXPERIMENTS),
            "missed": worst(name, layout, all_laws, "trainings", EXPERIMENTS),
            "runs alone": _plain(name, layout, null_laws, "these items"),
            "Satterthwaite": _plain(name, layout, all_laws, "Satterthwaite"),
            "items alone": _plain(name, layout, null_laws, "these runs of new"),
            "power": [
                round(100.0 * _counted(name, layout, law, EXPERIMENTS)["trainings claimed"] / EXPERIMENTS, 1)
                for law in all_laws
                if law.effect and law.binary
            ],
        }
    return levels


def _plain(name: str, layout: Layout, chosen_laws: list[Law], level: str) -> float:
    return round(max(100.0 * _counted(name, layout, law, EXPERIMENTS)[level] / EXPERIMENTS for law in chosen_laws), 1)


def exact_row(name: str, layout: Layout) -> dict[str, Any]:
    """Return the rates of McNemar's exact test and its interval."""
    binary_laws = [law for law in laws(1) if law.binary]
    equal_laws = [law for law in binary_laws if not law.points and not law.effect]
    return {
        "items": name,
        "false": worst(name, layout, equal_laws, "exact claimed", EXPERIMENTS_EXACT),
        "missed": worst(name, layout, binary_laws, "exact", EXPERIMENTS_EXACT),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="write the tables from the stored numbers")
    if not parser.parse_args().page:
        rows = []
        for name, layout in LAYOUTS.items():
            for runs in RUNS:
                rows.append(row(name, layout, runs))
                print(name, runs, flush=True)
            _CACHE.clear()
        numbers = {"rows": rows, "exact": [exact_row(name, layout) for name, layout in EXACT.items()]}
        NUMBERS.write_text(json.dumps(numbers, indent=1) + "\n", encoding="utf-8")
    import item_rate_page

    item_rate_page.write()


if __name__ == "__main__":
    main()
