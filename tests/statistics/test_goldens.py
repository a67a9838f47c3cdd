"""Every stored golden is judged again from its plan and observations to the same words and numbers."""

import copy

import msgspec
import pytest
from support.goldens.golden_experiments import SEED, plan_and_observations, replay
from support.goldens.golden_json import differences, names, stored

from esper_ab.verdict.judge import judge
from esper_ab.verdict.looks import take_looks
from esper_ab.verdict.tuning import tune


@pytest.mark.parametrize("name", names())
def test_a_golden_is_judged_again_to_the_same_answer(name):
    judged = list(replay(stored(name)))
    assert judged
    assert [line for what, before, after in judged for line in differences(before, after, what)] == []


PLANNED = [name for name in names() if stored(name)["kind"] in ("experiment", "joint", "planned table")]


@pytest.mark.parametrize("name", PLANNED)
def test_the_judge_takes_the_same_looks_as_the_coordinator(name):
    """In any order of the runs."""
    plan, seen = plan_and_observations(stored(name))
    progress = _looks(plan, seen)
    assert judge(plan, seen, rng_seed=SEED).progress == progress
    other = msgspec.structs.replace(seen, rows=seen.rows[::-1])
    assert _looks(plan, other) == progress


def _looks(plan, seen):
    if plan.cells:
        seen = tune(seen, plan).observations
    return take_looks(plan, seen)


def test_the_goldens_contain_every_kind_of_verdict():
    answers = [stored(name)["answer"] for name in names()]
    words = {comparison["verdict"] for answer in answers for comparison in answer.get("comparisons", ())}
    assert words >= {
        "BETTER",
        "BETTER, BELOW MARGIN",
        "WORSE",
        "EQUIVALENT",
        "IDENTICAL",
        "INCONCLUSIVE",
        "NO INFERENCE",
        "BLOCKED",
    }


def test_a_changed_outcome_or_a_lost_run_changes_the_answer():
    golden = stored("plan_one_look")
    columns = golden["observations"]["columns"]
    for change in ({"value": 60.0}, {"value": None, "status": "failed"}):
        other = copy.deepcopy(golden)
        other["observations"]["rows"][0] = [
            change.get(name, value) for name, value in zip(columns, other["observations"]["rows"][0], strict=True)
        ]
        ((_, before, after),) = replay(other)
        assert any("/headline" in line for line in differences(before, after))
