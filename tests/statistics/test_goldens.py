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
def test_judging_a_golden_again_gives_the_stored_answer(name):
    judged_parts = list(replay(stored(name)))
    assert judged_parts
    assert [
        line for part, stored_value, new_value in judged_parts for line in differences(stored_value, new_value, part)
    ] == []


PLANNED = [name for name in names() if stored(name)["kind"] in ("experiment", "joint", "planned table")]


@pytest.mark.parametrize("name", PLANNED)
def test_the_judge_takes_the_same_looks_as_the_coordinator(name):
    """The order of the runs does not matter."""
    plan, observations = plan_and_observations(stored(name))
    progress = _take_looks(plan, observations)
    assert judge(plan, observations, rng_seed=SEED).progress == progress
    reversed_observations = msgspec.structs.replace(observations, rows=observations.rows[::-1])
    assert _take_looks(plan, reversed_observations) == progress


def _take_looks(plan, observations):
    if plan.cells:
        observations = tune(observations, plan).observations
    return take_looks(plan, observations)


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
        changed_golden = copy.deepcopy(golden)
        changed_golden["observations"]["rows"][0] = [
            change.get(name, value)
            for name, value in zip(columns, changed_golden["observations"]["rows"][0], strict=True)
        ]
        ((_, stored_value, new_value),) = replay(changed_golden)
        assert any("/headline" in line for line in differences(stored_value, new_value))
