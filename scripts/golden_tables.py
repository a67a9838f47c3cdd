"""Goldens of external results: tables that are explored, or judged by a plan of `esper-ab design`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support import golden
from support.in_process import done

from esper_ab.readers.external_plan import ranges_of, read_plan, scales_of, told_by_task
from esper_ab.readers.external_table import read_csv
from esper_ab.verdict.analysis_plan import Rule

Make = Callable[[], dict[str, Any]]  # in an empty folder, where it works
Row = dict[str, Any]
_FILES = Path(__file__).resolve().parents[1] / "tests" / "statistics" / "files"
_RESULTS = Path("results.csv")


def _rows(
    means: Mapping[str, float], seeds: Sequence[int], *, sd: float = 2.0, task: str = "", drift: float = 0.0,
    decimals: int = 3,
) -> list[Row]:  # fmt: skip
    """Return one row per run: group mean + seed noise + own noise and, for the first group, drift."""
    rows = []
    for place, seed in enumerate(seeds):
        shared = random.Random(f"{task} {seed}").gauss(0.0, 2.0)
        for group, mean in means.items():
            own = random.Random(f"{task} {seed} {group}").gauss(0.0, sd)
            moved = drift * place if group == next(iter(means)) else 0.0
            row = {"group": group, "seed": seed, "outcome": round(70.0 + mean + shared + own + moved, decimals)}
            rows.append(row | ({"task": task} if task else {}))
    return rows


def _text(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [",".join("" if row.get(name) is None else str(row.get(name, "")) for name in names) for row in rows]
    return "\n".join((",".join(names), *lines, ""))


def _lost(rows: list[Row], *runs: tuple[str, int]) -> list[Row]:
    """Return the same rows with these (group, seed) outcomes empty."""
    return [row | {"outcome": None} if (row["group"], row["seed"]) in runs else row for row in rows]


def _without(rows: list[Row], *runs: tuple[str, int]) -> list[Row]:
    return [row for row in rows if (row["group"], row["seed"]) not in runs]


def _clustered(rows: list[Row], size: int) -> list[Row]:
    return [row | {"cluster": f"c{row['seed'] // size}"} for row in rows]


def _judged(rows: Callable[[], list[Row]], groups: str, *flags: str, margin: str = "2") -> Make:
    """Return rows to be judged by a plan; `flags`: flags of `esper-ab design`."""

    def make() -> dict[str, Any]:
        done("design", "--groups", groups, "--margin", margin, *flags)
        _RESULTS.write_text(_text(rows()))
        done("judge", "plan.json", "results.csv")
        return golden.of_judged(read_plan(Path("plan.json")), read_csv(_RESULTS))

    return make


def _explored(
    rows: Callable[[], list[Row]], /, *, margin: str = "2", better: str = "higher", unit: str = "", worst: str = "",
    scores: str = "", **asked: Any,
) -> Make:  # fmt: skip
    """Return rows without a plan; `asked`: control, alpha, paired, rows."""

    def make() -> dict[str, Any]:
        _RESULTS.write_text(_text(rows()))
        outcomes = read_csv(_RESULTS)
        scales = scales_of(
            outcomes.tasks, told_by_task(margin), better=told_by_task(better), unit=told_by_task(unit),
            worst=told_by_task(worst),
        )  # fmt: skip
        told = {"control": "", "alpha": 0.05} | asked
        rule = Rule(control=told.pop("control"), alpha=told.pop("alpha"))
        return golden.of_explored(outcomes, scales, rule, ranges_of(outcomes.tasks, told_by_task(scores)), **told)

    return make


def _of_file(name: str, **asked: Any) -> Make:
    def make() -> dict[str, Any]:
        _RESULTS.write_bytes((_FILES / name).read_bytes())
        outcomes = read_csv(_RESULTS)
        return golden.of_explored(outcomes, scales_of(outcomes.tasks, 2.0, unit="%"), Rule(), {}, **asked)

    return make


def _items() -> dict[str, Any]:
    """Return several rows for one run (items), which must be refused."""
    rows = [
        {"group": group, "run": run, "value": float(item % 2), "status": "ok", "item": item}
        for group in ("new", "old") for run in ("r1", "r2") for item in range(3)
    ]  # fmt: skip
    return golden.of_refused("results.csv", "", rows)


def _binary() -> list[Row]:
    rows = []
    for seed in range(24):
        for group, share in (("new", 0.9), ("old", 0.3)):
            succeeds = random.Random(f"{seed} {group}").random() < share
            rows.append({"group": group, "seed": seed, "outcome": int(succeeds)})
    return rows


def _unpaired(new: int, old: int, shift: float = 4.0) -> list[Row]:
    draw = random.Random(5)
    sizes = (("new", new, shift, 1.0), ("old", old, 0.0, 3.0))
    return [
        {"group": group, "run": f"{group}{n}", "outcome": round(70.0 + mean + draw.gauss(0.0, sd), 3)}
        for group, count, mean, sd in sizes for n in range(count)
    ]  # fmt: skip


def _tasks(shifts: Mapping[str, float], seeds: int, groups: Sequence[str] = ("new", "old")) -> list[Row]:
    first, *others = groups
    return [
        row for task, shift in shifts.items()
        for row in _rows({first: shift} | dict.fromkeys(others, 0.0), range(seeds), task=task)
    ]  # fmt: skip


def _cells() -> list[Row]:
    """Return rows in which each group's cell is chosen on two seeds and judged on ten."""
    shifts = {"low": {"new": -3.0, "old": 0.0}, "high": {"new": 4.0, "old": -2.0}}
    return [
        {"group": row["group"], "cell": cell, "seed": row["seed"], "outcome": row["outcome"]}
        for cell, means in shifts.items() for row in _rows(means, range(12), task=cell)
        if row["seed"] < 2 or (row["group"], cell) in (("new", "high"), ("old", "low"))
    ]  # fmt: skip


_UNLIKE, _LIKE = {"new": 4.0, "old": 0.0}, {"new": 0.3, "old": 0.0}
_THREE = {"new": 5.0, "other": 0.5, "old": 0.0}

GOLDENS: dict[str, Make] = {
    "table_better": _explored(lambda: _rows(_UNLIKE, range(8))),
    "table_worse_where_lower_is_better": _explored(lambda: _rows(_UNLIKE, range(8)), better="lower", unit="J"),
    "table_equivalent": _explored(lambda: _rows(_LIKE, range(20), sd=0.5), unit="%"),
    "table_undecided": _explored(lambda: _rows(_LIKE, range(7), sd=3.0)),
    "table_too_few": _explored(lambda: _rows(_UNLIKE, range(4))),
    "table_equal": _explored(lambda: _rows({"new": 0.0, "old": 0.0}, range(8), decimals=-1)),
    "table_binary": _explored(_binary, margin="0.2"),
    "table_binary_unpaired": _explored(_binary, margin="0.2", paired=False),
    "table_items": _items,
    "table_clusters": _explored(lambda: _clustered(_rows(_UNLIKE, range(16)), 2)),
    "table_clusters_unpaired": _explored(lambda: _clustered(_rows(_UNLIKE, range(16)), 2), paired=False),
    "table_welch": _explored(lambda: _unpaired(8, 12)),
    "table_welch_large": _explored(lambda: _unpaired(20, 40, 0.2), rows="runs"),
    "table_many_rows": _explored(lambda: _unpaired(20, 40)),
    "table_unpaired_lost": _explored(
        lambda: [row | {"outcome": None} if row["run"] in ("new3", "old1") else row for row in _unpaired(9, 9)],
        worst="0",
    ),
    "table_no_partner": _explored(lambda: _without(_rows(_UNLIKE, range(12)), ("new", 3))),
    "table_most_without_partner": _of_file("unequal2.csv"),
    "table_tasks": _explored(lambda: _tasks({"hop": 4.0, "walk": 2.0}, 8), margin="hop=2,walk=3", scores="0..100"),
    "table_tasks_opposed": _explored(
        lambda: _tasks({"hop": 5.0, "walk": -5.0, "swim": 0.0}, 9), better="hop=higher,walk=lower,swim=higher"
    ),
    "table_drift_by_seed": _of_file("drift.csv"),
    "table_drift_by_order": _explored(lambda: [
        row | {"seed": f"s{row['seed']}", "order": 2 * row["seed"] + (row["group"] == "old")}
        for row in _rows(_UNLIKE, range(12), sd=0.5, drift=0.5)
    ]),
    "table_lost": _explored(lambda: _lost(_rows(_UNLIKE, range(12)), ("new", 2), ("new", 7), ("old", 5))),
    "table_lost_with_worst": _explored(lambda: _lost(_rows(_UNLIKE, range(12)), ("new", 2), ("old", 5)), worst="0"),
    "table_lost_survives": _explored(
        lambda: _lost(_rows({"new": 30.0, "old": 0.0}, range(16)), ("new", 2)), worst="50"
    ),
    "table_three_groups": _explored(lambda: _rows(_THREE, range(10))),
    "table_control": _explored(lambda: _rows(_THREE, range(10)), control="old", alpha=0.01),
    "plan_one_look": _judged(lambda: _rows(_UNLIKE, range(8)), "new,old", "--seeds", "8"),
    "plan_early_stop": _judged(lambda: _rows(_UNLIKE, range(20)), "new,old", "--seeds", "20"),
    "plan_no_early_stop": _judged(
        lambda: _rows(_UNLIKE, range(20)), "new,old", "--seeds", "20", "--no-early-stop"
    ),
    "plan_begun": _judged(lambda: _rows(_LIKE, range(12), sd=3.0), "new,old", "--seeds", "20"),
    "plan_before_the_first_look": _judged(lambda: _rows(_UNLIKE, range(3)), "new,old", "--seeds", "10"),
    "plan_three_groups": _judged(lambda: _rows(_THREE, range(16), sd=1.0), "new,other,old", "--seeds", "16"),
    "plan_control": _judged(
        lambda: _rows(_THREE, range(16)), "new,other,old", "--seeds", "16", "--control", "old", "--alpha", "0.1"
    ),
    "plan_futility": _judged(lambda: _rows({"new": 0.0, "old": 0.0}, range(24), sd=1.0), "new,old", "--seeds",
                             "24", "--futility", "0.8"),
    "plan_equivalent": _judged(lambda: _rows(_LIKE, range(16), sd=0.5), "new,old", "--seeds", "16"),
    "plan_tasks": _judged(
        lambda: _tasks({"hop": 4.0, "walk": 2.0}, 10), "new,old", "--seeds", "10", "--tasks", "hop,walk",
        margin="hop=2,walk=3",
    ),
    "plan_tasks_looks": _judged(
        lambda: _tasks({"hop": 9.0, "walk": 0.5}, 16), "new,old", "--seeds", "16", "--tasks", "hop,walk",
    ),
    "plan_tasks_lost": _judged(
        lambda: _lost(_tasks({"hop": 6.0, "walk": 6.0}, 10), ("new", 4)), "new,old", "--seeds", "10", "--tasks",
        "hop,walk", "--worst", "hop=0,walk=20",
    ),
    "plan_task_missing": _judged(
        lambda: _tasks({"hop": 4.0}, 8), "new,old", "--seeds", "8", "--tasks", "hop,walk",
    ),
    "plan_cells": _judged(_cells, "new,old", "--cells", "low,high", "--choose", "2", "--seeds", "10"),
    "plan_cells_not_chosen": _judged(
        lambda: [row for row in _cells() if row["seed"] < 1], "new,old", "--cells", "low,high", "--choose", "2",
        "--seeds", "10",
    ),
    "plan_clusters": _judged(lambda: _clustered(_rows(_UNLIKE, range(12)), 3), "new,old", "--seeds", "12"),
    "plan_lost": _judged(
        lambda: _lost(_rows(_UNLIKE, range(12)), ("new", 2), ("old", 5)), "new,old", "--seeds", "12",
    ),
    "plan_lost_with_worst": _judged(
        lambda: _lost(_rows(_UNLIKE, range(12)), ("new", 2), ("old", 5)), "new,old", "--seeds", "12",
        "--worst", "0",
    ),
    "plan_drift": _judged(lambda: _rows(_UNLIKE, range(12), sd=0.5, drift=0.5), "new,old", "--seeds", "12"),
    "plan_departures": _judged(
        lambda: _without(_rows(_THREE, range(14)), ("old", 6)), "new,old", "--seeds", "12",
    ),
    "plan_lower_is_better": _judged(
        lambda: _rows(_UNLIKE, range(8)), "new,old", "--seeds", "8", "--better", "lower"
    ),
}
