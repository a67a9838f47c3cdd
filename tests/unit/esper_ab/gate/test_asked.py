"""A gate's question as an experiment with two states of the code."""

from dataclasses import replace
from pathlib import Path

import pytest

from esper_ab.contracts.errors import UsageError
from esper_ab.gate.asked import ask
from esper_ab.gate.question import GateQuestion

COMMAND = "python train.py --seed {seed} --rate {rate}"
RATE = {"trainer.rate": 1}
QUESTION = GateQuestion(train=COMMAND, better="lower", outcome="loss", margin=2, minutes=3, settings=RATE)
STATES = {"base": "main", "head": "."}


def test_groups_claim_and_settings_follow_from_the_question():
    asked_experiment = ask(QUESTION, STATES, "gate-1")
    assert [group.name for group in asked_experiment.groups] == ["base", "head"]
    assert asked_experiment.states_of_code == {"base": "main", "head": str(Path.cwd())}
    assert (asked_experiment.name, asked_experiment.control, asked_experiment.claim) == ("gate-1", "base", "not-worse")
    assert (asked_experiment.outcome, asked_experiment.outcome_better) == ("loss", "lower")
    assert (asked_experiment.margin, asked_experiment.identical_after) == (2.0, 6)
    assert all(group.settings.trainer == {"rate": 1} for group in asked_experiment.groups)


def test_a_gate_with_guardrails_may_end_early_too():
    asked_experiment = ask(replace(QUESTION, guardrails=("lower wall_s margin 10%",)), STATES, "gate-1")
    assert (asked_experiment.guardrails, asked_experiment.identical_after) == (("lower wall_s margin 10%",), 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 3}, "^settings: seeds cannot be set here"),
        ({"control": "base", "looks": [6]}, "^settings: control and looks cannot"),
        ({"group": 3}, "^settings: group cannot"),
        ({"threads": "many", "trainer.rate": 1}, "^settings: threads"),
        ({"rate": 1}, "write trainer.rate"),
        ({}, "rate"),
    ],
)
def test_other_settings_are_refused_as_those_of_the_file(settings, message):
    with pytest.raises(UsageError, match=message) as caught:
        ask(replace(QUESTION, settings=settings), STATES, "gate-1")
    assert "--set" not in str(caught.value)


@pytest.mark.parametrize("train", ["nosuch", "python train.py", "experiment.toml"])
def test_what_is_no_trainer_is_refused(train):
    with pytest.raises(UsageError, match=train):
        ask(replace(QUESTION, train=train), STATES, "gate-1")
