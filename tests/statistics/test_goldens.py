"""Every stored golden, judged again from its plan and its observations alone: the same words and numbers."""

import copy

import msgspec
import pytest
from support.golden import SEED, promised_and_seen, replay
from support.golden_json import differences, names, stored

from esper_ab.verdict.judge import judge
from esper_ab.verdict.looks import take_looks
from esper_ab.verdict.tuning import tune


@pytest.mark.parametrize("name", names())
def test_plan_and_observations_say_what_they_said(name):
    judged = list(replay(stored(name)))
    assert judged
    assert [line for what, told, found in judged for line in differences(told, found, what)] == []


PLANNED = [name for name in names() if stored(name)["kind"] in ("experiment", "joint", "planned table")]


@pytest.mark.parametrize("name", PLANNED)
def test_the_judge_takes_the_looks_that_the_coordinator_takes(name):
    """In whatever order the runs are told."""
    plan, seen = promised_and_seen(stored(name))
    progress = _looks(plan, seen)
    assert judge(plan, seen, rng_seed=SEED).progress == progress
    other = msgspec.structs.replace(seen, rows=seen.rows[::-1])
    assert _looks(plan, other) == progress


def _looks(plan, seen):
    if plan.cells:
        seen = tune(seen, plan).observations
    return take_looks(plan, seen)


def test_every_kind_of_verdict_is_among_them():
    answers = [stored(name)["answer"] for name in names()]
    words = {one["verdict"] for answer in answers for one in answer.get("comparisons", ())}
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


def test_one_other_number_or_loss_is_seen():
    told = stored("plan_one_look")
    columns = told["observations"]["columns"]
    for change in ({"value": 60.0}, {"value": None, "status": "failed"}):
        other = copy.deepcopy(told)
        other["observations"]["rows"][0] = [
            change.get(name, value) for name, value in zip(columns, other["observations"]["rows"][0], strict=True)
        ]
        ((_, before, found),) = replay(other)
        assert any("/headline" in line for line in differences(before, found))
