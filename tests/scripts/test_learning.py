"""The learning table: what its plans may hold, and what is said of pieces that are there and of those that are not."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from learning.pieces import BUDGETS, REPLICATES, ROOT, ZEROS
from learning.plans import SLOTS, random_plan
from learning.table import curves, differences, falls, markdown, pairs_needed, pieces_of, recorded, rows, state

from esper_ab.contracts.settings import DEFAULT_BLUEPRINTS, ControllerSettings, PolicySettings
from esper_ab.plan.notes import ENOUGH_EPISODES
from workers.controllers.schedule import make


@pytest.mark.parametrize("key", range(40))
def test_a_random_plan_is_a_schedule_that_grows_and_never_prunes(key):
    plan = random_plan(np.random.default_rng(key))
    make(ControllerSettings(schedule=plan), SLOTS, DEFAULT_BLUEPRINTS)  # ValueError where an entry is none
    ops = [entry.split(":")[1] for entry in plan]
    assert "prune" not in ops
    assert 1 <= ops.count("germinate") <= len(SLOTS)
    assert ops.count("advance") == 3 * ops.count("germinate")


def test_a_start_of_zeros_undoes_every_bias_of_the_default():
    biased = {f"policy.{name}=0" for name in PolicySettings.__struct_fields__
              if name.startswith("bias_") and getattr(PolicySettings(), name) != 0.0}  # fmt: skip
    assert set(ZEROS) == biased


def found(accuracy: float = 80.0):
    def run(level: float) -> dict[str, object]:
        return {"accuracy": level, "greedy": level + 1, "params": 900.0, "fossilized": 1.0, "pruned": 0.5,
                "curve": [50.0, level]}  # fmt: skip

    return {
        ("random", ""): {r: {**run(45.0 + r), "greedy": None} for r in range(3)},
        ("sparse", "12x8"): {r: run(accuracy + 2 * r) for r in range(3)},
        ("sparse, start 0", "12x8"): {0: run(60.0)},
    }


def test_rows_are_in_order_with_paired_differences_and_no_interval_of_one_run():
    table = rows(found())
    assert [(row["group"], row["runs"]) for row in table] == [("random", 3), ("sparse", 3), ("sparse, start 0", 1)]
    assert table[1]["over_random"] == pytest.approx(36.0)  # 80 - 45, 82 - 46, 84 - 47
    assert table[1]["lowest"] == 80.0
    assert math.isnan(table[2]["accuracy_half"])
    text = markdown(table)
    assert "| `sparse`, start 0 | 12 x 8 | 1 | 60.0 |" in text
    assert "nan" not in text


def test_recorded_runs_come_back_and_name_their_pieces():
    runs = [
        {"group": group, "budget": budget, "replicate": replicate, **run}
        for (group, budget), of in found().items() for replicate, run in of.items()
    ]  # fmt: skip
    assert recorded(runs) == found()
    assert pieces_of(found()) == {
        "fixed-1x8-0", "fixed-1x8-1", "fixed-1x8-2", "start-12x8-0", "start-12x8-1", "start-12x8-2", "zeros-12x8-0",
    }  # fmt: skip


def test_what_is_missing_is_named():
    *_, modes, search, zeros = state(found()).splitlines()
    names = [budget.name.replace("x", " x ") for budget in BUDGETS]
    assert modes == f"- modes: {names[0]} in 3 of {REPLICATES}, still to come {', '.join(names[1:])}"
    assert search == f"- `search`: nothing, still to come {', '.join(names)}"
    assert zeros == f"- start 0: {names[0]} in 1 of {REPLICATES}, still to come {', '.join(names[1:])}"


@pytest.mark.parametrize(("accuracy", "words"), [(80.0, "first at 80 % after 16 hosts"), (70.0, "never at 80 %")])
def test_curves_say_when_a_group_came_to_80_percent(accuracy, words):
    (line, _) = curves(found(accuracy)).splitlines()
    assert words in line


@pytest.mark.parametrize(("end", "told"), [(82.5, True), (83.5, False)])
def test_a_run_that_ends_below_its_best_is_named_with_what_its_reward_did(end, told):
    curve = [60.0] * 20 + [85.0] * 34 + [end] * 6
    runs = {("sparse", "60x16"): {4: {"curve": curve, "rewards": [0.5] * 20 + [0.88] * 40}}}
    line = "- `sparse`, 60 x 16, seed 4: 85.0 % → 82.5 %; its own reward, per episode: 0.880 → 0.880"
    assert falls(runs) == (line if told else "None.")


def test_of_a_few_episodes_no_fall_is_told():
    assert falls({("sparse", "12x8"): {0: {"curve": [*[85.0] * 11, 50.0]}}}) == "None."


def test_the_hosts_that_plans_call_enough_are_the_fewest_with_which_few_pairs_were():
    runs = recorded(json.loads((ROOT / "docs" / "evidence" / "benchmarks" / "learning.json").read_bytes())["runs"])
    pairs: dict[int, list[int]] = {}
    for line in differences(runs).splitlines()[2:]:
        budget, difference, _, _, _, pairs_for_the_margin, *_ = [cell.strip() for cell in line.strip("|").split("|")]
        episodes, n_envs = budget.split(" x ")
        if not any(other in difference for other in ("untrained", "schedule", "search", "start 0")):
            pairs.setdefault(int(episodes) * int(n_envs), []).append(int(pairs_for_the_margin))
    few = 20
    assert min(hosts for hosts, needed in pairs.items() if max(needed) <= few) == ENOUGH_EPISODES, pairs


def test_differences_are_of_the_replicates_that_both_have():
    of = found()
    sparse = of["sparse", "12x8"]
    of["minimal", "12x8"] = {r: {**run, "accuracy": run["accuracy"] - 5.0 - r} for r, run in sparse.items()}
    of["sparse, start 0", "12x8"] = {r: {**run, "accuracy": run["accuracy"] - 2.0} for r, run in sparse.items()}
    of["untrained", ""] = {r: {**run, "greedy": 40.0} for r, run in of["random", ""].items()}
    of["schedule", ""] = {r: {**run, "accuracy": run["accuracy"] - 1.0, "greedy": None} for r, run in sparse.items()}
    lines = differences(of).splitlines()[2:]
    assert [line.split("|")[2].strip() for line in lines] == [
        "all modes - untrained", "sparse - schedule", "minimal - schedule", "sparse - minimal",
        "sparse - sparse, start 0",
    ]  # fmt: skip
    assert lines[1].endswith("| +1.0 [+1.0, +1.0] | 0.0 | 2 |  |  |")
    assert "| 3 | +6.0 [" in lines[3]  # 5, 6, 7
    assert "| +0.0 [+0.0, +0.0] | 0.0 |" in lines[3]
    assert "| 3 | +2.0 [+2.0, +2.0] |" in lines[4]


@pytest.mark.parametrize(("sd", "pairs"), [(0.0, 2), (2.0, 10), (4.0, 34)])
def test_pairs_for_the_margin(sd, pairs):
    """Of d = 1 and 0.5: 10 and 34 by tables of the paired t-test (Cohen 1988)."""
    assert pairs_needed(sd) == pytest.approx(pairs, abs=1)
