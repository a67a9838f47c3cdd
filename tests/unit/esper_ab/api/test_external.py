import numpy as np
import pytest
from support.outcomes.csv_outcomes import drawn, rows

import esper_ab
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.python_data import read_data

A, B = drawn(8, 6.0)
RUNS = {"new": A, "old": B}


def make_plan(**options):
    return esper_ab.design_comparison(["new", "old"], 8, **{"margin": 2.0} | options)


def test_a_range_of_scores_adds_performance_profiles():
    judged_answer = esper_ab.judge_outcomes(make_plan(), RUNS, scores="0..100")
    compared_answer = esper_ab.compare_outcomes(RUNS, margin=2.0, scores="0..100")
    assert judged_answer.profiles == compared_answer.profiles != ()
    assert "Scores over all tasks" in str(judged_answer)
    table = [*rows(A, B, task="far"), *rows(A, B, task="time")]
    data = read_data({name: [row[name] for row in table] for name in table[0]})
    answer_of_tasks = esper_ab.judge_outcomes(
        make_plan(tasks=["far", "time"]), data, scores={"far": "0..100", "time": "100..0"}
    )
    assert [profile.group for profile in answer_of_tasks.profiles] == ["new", "old"]


def refusal_of(call):
    with pytest.raises(UsageError) as refusal:
        call()
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"looks": [6.5]}, "looks=[6.5]"),
        ({"margin": None}, "margin None"),
        ({"unit": 3}, "unit 3"),
        ({"alpha": "0.05"}, "alpha='0.05': expected float"),
        ({"alpha": 0.7}, "alpha=0.7: it must be"),
        ({"early_stop": "no"}, "early_stop='no'"),
        ({"cells": ["a", "b"], "choose": "2"}, "choose='2'"),
    ],
)
def test_the_refusal_of_a_wrong_type_names_the_argument(options, text):
    """Refusals of groups and seeds are in tests/golden/refusals."""
    assert text in refusal_of(lambda: make_plan(**options))


def test_numpy_numbers_and_arrays_are_accepted():
    plain_plan = make_plan(looks=[6, 8], alpha=0.25)
    numpy_plan = esper_ab.design_comparison(
        np.array(["new", "old"]), np.int64(8), margin=np.float64(2.0), looks=np.array([6, 8]), alpha=np.float32(0.25)
    )
    assert numpy_plan == plain_plan
    assert esper_ab.design_comparison(["new", "old"], np.arange(8.0), margin=2.0) == make_plan()
    assert "seeds=8.0" in refusal_of(lambda: esper_ab.design_comparison(["new", "old"], 8.0, margin=2.0))


def test_seeds_for_choosing_cells_come_before_the_judged_seeds():
    plan = make_plan(cells=["slow", "fast"], choose=4)
    assert plan.choosing == tuple("0123")
    assert plan.replicates == (*"456789", "10", "11")


@pytest.mark.parametrize("data", ["nope.csv", ".", {"A": "nope/dir"}, {"": "nope/dir"}, {"a": 3, "b": 4}, 3, None, {}])
def test_unreadable_data_are_refused_in_one_line(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    assert refusal_of(lambda: esper_ab.compare_outcomes(data, margin=2.0))
    assert "is no number" not in refusal_of(lambda: esper_ab.judge_outcomes(make_plan(), data))


def test_rows_can_be_declared_as_runs_pairs_or_items():
    lists_by_group = {
        "new": [71.0 + place % 5 for place in range(40)],
        "old": [70.0 + place % 7 for place in range(31)],
    }
    values_by_key = {group: dict(enumerate(values)) for group, values in lists_by_group.items()}
    for data, is_paired, text in ((lists_by_group, False, "40 and 31 runs"), (values_by_key, True, "31 pairs")):
        assert text in str(esper_ab.compare_outcomes(data, margin=2.0, paired=is_paired, rows="runs"))
    items = str(esper_ab.compare_outcomes(values_by_key, margin=2.0, rows="items"))
    assert "On these 31 items, checkpoint new" in " ".join(items.split())
    assert "rows='steps'" in refusal_of(lambda: esper_ab.compare_outcomes(RUNS, margin=2.0, rows="steps"))


def test_unpaired_binary_outcomes_are_exported_with_the_exact_test():
    runs = {"group": ["new"] * 8 + ["old"] * 7, "run": list(range(15)), "outcome": [1.0] * 7 + [0.0] * 8}
    (comparison,) = esper_ab.compare_outcomes(runs, margin=0.1).as_dict()["comparisons"]
    assert (comparison["pairs"], comparison["samples"]) == ([], {"a": [1.0] * 7 + [0.0], "b": [0.0] * 7})
    assert (comparison["test"], comparison["effect"]["ones_a"], comparison["effect"]["runs_b"]) == (
        "Boschloo's exact test",
        7,
        7,
    )
    assert (comparison["sign_flip"], comparison["plain"]) == (None, None)
    assert esper_ab.compare_outcomes(runs, margin=0.1).figure is not None


def test_a_declared_worst_outcome_is_part_of_the_scale():
    assert [scale.worst for scale in make_plan(worst=0.0).scales] == [0.0]
    assert [scale.worst for scale in esper_ab.compare_outcomes(RUNS, margin=2.0, worst=-1.0).scales] == [-1.0]
    assert [scale.worst for scale in make_plan().scales] == [None]


def test_rows_that_may_be_items_need_a_named_item_column():
    rows = [(group, seed, thing) for group in ("new", "old") for seed in range(6) for thing in range(12)]
    group, seed, thing = zip(*rows, strict=True)
    outcome = [float((7 * i + j) % 5) for i, j in zip(seed, thing, strict=True)]
    data = {"group": group, "seed": seed, "thing": thing, "outcome": outcome}
    plan = esper_ab.design_comparison(["new", "old"], 6, margin=2.0)
    assert "columns={'item': 'NAME'}" in refusal_of(lambda: esper_ab.judge_outcomes(plan, data))
    (comparison,) = esper_ab.judge_outcomes(plan, data, columns={"item": "thing"}).comparisons
    assert comparison.question.level == "trainings"
