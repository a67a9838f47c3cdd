"""What a gate's question accepts, and what its directory's name depends on."""

import math
from dataclasses import replace

import pytest

from esper_ab.contracts.code_state import StateOfCode
from esper_ab.contracts.errors import UsageError
from esper_ab.gate.question import GateQuestion

QUESTION = GateQuestion(train="train.py:train", better="lower", margin=0.5, minutes=3, settings={"threads": 1})


def state(sealed, inside=""):
    return StateOfCode(group="base", asked=".", commit=sealed, sealed=sealed, top="/code", inside=inside)


NAME = QUESTION.name(state("a" * 40), state("b" * 40))


@pytest.mark.parametrize(
    "changes", [{"minutes": 5}, {"run_seconds": 3.0}, {"undecided": "pass"}, {"margin": 0.5}, {"base": "main"}]
)
def test_what_only_costs_time_does_not_change_the_directory(changes):
    assert replace(QUESTION, **changes).name(state("a" * 40), state("b" * 40)) == NAME


@pytest.mark.parametrize(
    "changes",
    [{"margin": 1}, {"claim": "better"}, {"settings": {}}, {"outcome": "x"}, {"guardrails": ("lower x margin 1",)}],
)
def test_another_question_has_another_directory(changes):
    assert replace(QUESTION, **changes).name(state("a" * 40), state("b" * 40)) != NAME


def test_other_states_have_another_directory():
    assert QUESTION.name(state("a" * 40), state("c" * 40)) != NAME
    assert QUESTION.name(state("a" * 40), state("b" * 40, inside="below")) != NAME


@pytest.mark.parametrize(
    "changes",
    [
        {"train": ""},
        {"better": "more"},
        {"margin": 0},
        {"margin": math.nan},
        {"minutes": -1},
        {"minutes": True},
        {"claim": "worse"},
        {"base": ""},
        {"head": ""},
        {"run_seconds": -1},
        {"undecided": "maybe"},
    ],
)
def test_an_invalid_value_is_refused_by_its_key(changes):
    (key,) = changes
    with pytest.raises(UsageError, match=f"^{key}: expected"):
        replace(QUESTION, **changes)


def test_the_requirement_follows_from_claim_and_guardrails():
    assert QUESTION.requirement == "head not-worse-than base"
    guarded_question = replace(QUESTION, claim="better", guardrails=("lower x margin 1",))
    assert guarded_question.requirement == "head better-than base with guardrails"
