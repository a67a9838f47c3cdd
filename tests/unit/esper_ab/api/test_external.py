import pytest
from support.elsewhere import drawn, rows

import esper_ab
from esper_ab.contracts.errors import UsageError
from esper_ab.external.frames import read_data

A, B = drawn(8, 6.0)
RUNS = {"new": A, "old": B}


def _plan(**options):
    return esper_ab.design_comparison(["new", "old"], 8, **{"margin": 2.0} | options)


def test_scores_give_profiles_of_what_is_compared_and_of_what_is_judged():
    judged = esper_ab.judge_endpoints(_plan(), RUNS, scores="0..100")
    compared = esper_ab.compare_endpoints(RUNS, margin=2.0, scores="0..100")
    assert judged.profiles == compared.profiles != ()
    assert "Scores over all tasks" in str(judged)
    found = [*rows(A, B, task="far"), *rows(A, B, task="time")]
    data = read_data({name: [row[name] for row in found] for name in found[0]})
    several = esper_ab.judge_endpoints(_plan(tasks=["far", "time"]), data, scores={"far": "0..100", "time": "100..0"})
    assert [one.group for one in several.profiles] == ["new", "old"]


def test_a_plan_knows_no_scores():
    with pytest.raises(UsageError, match="design_comparison: no argument scores"):
        _plan(scores="0..100")
