"""Guardrails as users write them, and the plans that cannot show that they hold."""

import re

import pytest
from support.plans import fake_plans, requests

from esper_ab.contracts.errors import UsageError
from esper_ab.contracts.measures import Measure, TaskMeasures
from esper_ab.design.design import default_looks
from esper_ab.design.guardrails import check_guardrails, guardrails_of
from workers.kinds.growth.measures import MEASURES

OWN = TaskMeasures(
    outcome=Measure(name="outcome", label="score", better="higher"),
    measures=(Measure(name="memory_mb", label="memory mb"), Measure(name="eval_loss", label="eval/loss", unit="nats")),
)
POSSIBLE = {"groups": ("a", "b"), "control": "", "seeds": 20, "looks": ()}


def test_a_guardrail_names_direction_measure_and_margin():
    (loss, memory, wall_time, crashes) = guardrails_of(
        (
            "lower eval/loss margin 0.2",
            "lower  memory mb  margin 5 %",
            "lower wall_s margin 10%",
            "lower crashes margin 0.2",
        ),
        OWN,
    )
    assert (loss.measure.name, loss.measure.better, loss.margin, loss.relative) == ("eval_loss", "lower", 0.2, False)
    assert (memory.measure.name, memory.margin, memory.relative) == ("memory_mb", 0.05, True)
    assert [guardrail.source for guardrail in (loss, memory, wall_time, crashes)] == [
        "measure",
        "measure",
        "wall_s",
        "crashes",
    ]
    assert [guardrail.margin_words for guardrail in (loss, memory, crashes)] == ["0.2 nats", "5 %", "0.2"]


def test_a_measure_of_the_task_goes_before_one_that_every_run_has():
    own = TaskMeasures(outcome=OWN.outcome, measures=(Measure(name="wall_s", label="seconds"),))
    (guardrail,) = guardrails_of(("higher wall_s margin 3",), own)
    assert (guardrail.source, guardrail.measure.label) == ("measure", "seconds")


def test_a_measure_that_runs_do_not_record_is_refused_with_what_records_some():
    outcome_alone = TaskMeasures(outcome=OWN.outcome)
    for texts in (("lower wall_s margin 3",), ("lower crashes margin 0.2",)):
        assert guardrails_of(texts, outcome_alone)[0].source != "measure"
    expected = (
        "--guardrail 'lower eval/loss margin 1': no measure 'eval/loss'; known: wall_s, crashes; runs record nothing "
        "else beside their outcome: a command never does, a function does if it returns a dict of numbers"
    )
    with pytest.raises(UsageError, match=rf"\A{re.escape(expected)}\Z"):
        guardrails_of(("lower eval/loss margin 1",), outcome_alone)
    with pytest.raises(UsageError, match=r"known: wall_s, crashes, memory mb, eval/loss\Z"):
        guardrails_of(("lower height margin 1",), OWN)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("memory_mb 5",), "expected the direction that is better, a measure, and how much worse"),
        (("lower memory_mb margin",), "expected the direction"),
        (("lower memory_mb margin much",), "the margin much must be a number above 0"),
        (("lower memory_mb margin 0",), "must be a number above 0"),
        (("lower memory_mb margin nan",), "must be a number above 0"),
        (("lower memory margin 5",), "no measure 'memory'"),
        (("higher crashes margin 0.2",), "lower is better for crashes per run"),
        (("lower crashes margin 5%",), "crashes need a margin per run"),
        (("higher score margin 1",), "score is the outcome"),
        (("lower memory_mb margin 5", "lower memory mb margin 1%"), "memory_mb has two guardrails"),
    ],
)
def test_a_guardrail_that_cannot_be_read_is_refused(texts, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        guardrails_of(texts, OWN)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"groups": ("a", "b", "c")}, "whether a group is not worse than one other"),
        ({"seeds": None}, "needs a fixed number of seeds"),
        ({"seeds": 14}, "needs at least 15 seeds"),
        ({"looks": (10, 20)}, "with guardrails the first look needs at least 15 seeds"),
    ],
)
def test_a_plan_that_cannot_show_that_guardrails_hold_is_refused(changes, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        check_guardrails(("lower wall_s margin 10%",), **POSSIBLE | changes)
    assert check_guardrails((), **POSSIBLE | changes) is None
    assert check_guardrails(("lower wall_s margin 10%",), **POSSIBLE) is None


def test_a_plan_with_guardrails_has_their_bounds_and_the_looks_of_a_one_sided_test():
    texts = ("lower wall_s margin 10%", "lower val_loss margin 0.1")
    design = fake_plans.plan(seeds=30, guardrails=texts).design
    assert design.looks == default_looks(30, "not-worse") == (20, 30)
    assert design.guards.items == guardrails_of(texts, MEASURES)
    assert len(design.guards.nominal_p) == 2
    assert design.non_inferiority is None
    assert requests.experiment(seeds=30).guardrails == ()


def test_guardrails_have_the_bounds_of_better_on_one_side_also_beside_moderated_variances():
    texts = ("lower wall_s margin 10%",)
    plan = {"groups": ("a", "b", "c"), "cores": 3, "control": "c", "seeds": 30, "guardrails": texts}
    own = fake_plans.plan(**plan).design
    assert own.guards.nominal_p == tuple(p / 2.0 for p in own.boundaries[0].nominal_p)
    moderated = fake_plans.plan(**plan, variances="moderated").design
    assert moderated.guards.nominal_p == own.guards.nominal_p
