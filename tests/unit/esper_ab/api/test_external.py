import numpy as np
import pytest
from support.outcomes.csv_outcomes import drawn, rows

import esper_ab
from esper_ab.contracts.errors import UsageError
from esper_ab.readers.python_data import read_data

A, B = drawn(8, 6.0)
RUNS = {"new": A, "old": B}


def _plan(**options):
    return esper_ab.design_comparison(["new", "old"], 8, **{"margin": 2.0} | options)


def test_scores_give_profiles_of_what_is_compared_and_of_what_is_judged():
    judged = esper_ab.judge_outcomes(_plan(), RUNS, scores="0..100")
    compared = esper_ab.compare_outcomes(RUNS, margin=2.0, scores="0..100")
    assert judged.profiles == compared.profiles != ()
    assert "Scores over all tasks" in str(judged)
    found = [*rows(A, B, task="far"), *rows(A, B, task="time")]
    data = read_data({name: [row[name] for row in found] for name in found[0]})
    several = esper_ab.judge_outcomes(_plan(tasks=["far", "time"]), data, scores={"far": "0..100", "time": "100..0"})
    assert [one.group for one in several.profiles] == ["new", "old"]


def _refused(call):
    with pytest.raises(UsageError) as raised:
        call()
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize(
    ("options", "said"),
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
def test_an_argument_of_another_type_is_refused_by_its_name(options, said):
    """Groups and seeds, too: tests/golden/refusals."""
    assert said in _refused(lambda: _plan(**options))


def test_numbers_and_lists_of_numpy_are_as_good_as_others():
    plain = _plan(looks=[6, 8], alpha=0.25)
    same = esper_ab.design_comparison(
        np.array(["new", "old"]), np.int64(8), margin=np.float64(2.0), looks=np.array([6, 8]), alpha=np.float32(0.25)
    )
    assert same == plain
    assert esper_ab.design_comparison(["new", "old"], np.arange(8.0), margin=2.0) == _plan()
    assert "seeds=8.0" in _refused(lambda: esper_ab.design_comparison(["new", "old"], 8.0, margin=2.0))


def test_seeds_to_choose_on_are_extra_as_on_the_command_line():
    plan = _plan(cells=["slow", "fast"], choose=4)
    assert plan.choosing == tuple("0123")
    assert plan.replicates == (*"456789", "10", "11")


@pytest.mark.parametrize("data", ["nope.csv", ".", {"A": "nope/dir"}, {"": "nope/dir"}, {"a": 3, "b": 4}, 3, None, {}])
def test_data_that_cannot_be_read_are_refused_in_one_line(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    assert _refused(lambda: esper_ab.compare_outcomes(data, margin=2.0))
    assert "is no number" not in _refused(lambda: esper_ab.judge_outcomes(_plan(), data))


def test_rows_and_pairs_are_told_as_the_command_is():
    many = {"new": [71.0 + place % 5 for place in range(40)], "old": [70.0 + place % 7 for place in range(31)]}
    keyed = {group: dict(enumerate(values)) for group, values in many.items()}
    for data, paired, said in ((many, False, "40 and 31 runs"), (keyed, True, "31 pairs")):
        assert said in str(esper_ab.compare_outcomes(data, margin=2.0, paired=paired, rows="runs"))
    items = str(esper_ab.compare_outcomes(keyed, margin=2.0, rows="items"))
    assert "On these 31 items, checkpoint new" in " ".join(items.split())
    assert "rows='steps'" in _refused(lambda: esper_ab.compare_outcomes(RUNS, margin=2.0, rows="steps"))


def test_what_forms_no_pairs_and_what_is_0_or_1_is_in_the_document():
    runs = {"group": ["new"] * 8 + ["old"] * 7, "run": list(range(15)), "outcome": [1.0] * 7 + [0.0] * 8}
    (one,) = esper_ab.compare_outcomes(runs, margin=0.1).as_dict()["comparisons"]
    assert (one["pairs"], one["samples"]) == ([], {"a": [1.0] * 7 + [0.0], "b": [0.0] * 7})
    assert (one["test"], one["effect"]["ones_a"], one["effect"]["runs_b"]) == ("Boschloo's exact test", 7, 7)
    assert (one["sign_flip"], one["plain"]) == (None, None)
    assert esper_ab.compare_outcomes(runs, margin=0.1).figure is not None


def test_the_worst_outcome_is_that_which_was_named():
    assert [scale.worst for scale in _plan(worst=0.0).scales] == [0.0]
    assert [scale.worst for scale in esper_ab.compare_outcomes(RUNS, margin=2.0, worst=-1.0).scales] == [-1.0]
    assert [scale.worst for scale in _plan().scales] == [None]
