"""A plan declares with which experiments it is pooled only if it is the same plan on another rng seed."""

from dataclasses import replace

import pytest
from support.journals.replications import experiment

from esper_ab.contracts.code_state import written_code
from esper_ab.plan.pooling import declared
from esper_ab.plan.text import pooling_words


def test_the_same_plan_on_another_rng_seed_is_declared_with_all_earlier_ones():
    original = experiment(1, earlier=(0,)).plan()
    plan = declared(experiment(2).plan(), original)
    assert [earlier.rng_seed for earlier in plan.earlier] == [0, 1]
    assert pooling_words(plan) == (
        "Replicates seed0 and synthetic: when all have ended, they are also judged together, in one look at 1.25 %."
    )


@pytest.mark.parametrize(
    "changed",
    [
        experiment(2, replicates=8),
        experiment(2, episodes=9),
        experiment(2, settings={"margin": 3.0}),
        experiment(2, settings={"alpha": 0.1}),
        experiment(1),
    ],
)
def test_another_plan_or_the_same_rng_seed_declares_nothing(changed):
    plan = declared(changed.plan(), experiment(1).plan())
    assert plan.earlier == ()
    assert pooling_words(plan) == ""


def test_an_open_ended_replication_names_the_anytime_valid_rule():
    settings = {"open_ended": True}
    plan = declared(experiment(2, settings=settings).plan(), experiment(1, settings=settings).plan())
    assert pooling_words(plan).endswith("by the anytime-valid t over all pairs.")


def test_a_group_with_another_setting_declares_nothing():
    groups = experiment(1).groups
    changed = {**groups, "shaped": replace(groups["shaped"], mode="sparse")}
    assert declared(experiment(2, groups=changed).plan(), experiment(1).plan()).earlier == ()


def test_the_same_states_of_the_code_are_declared_and_others_are_not():
    def plan(rng_seed, head):
        states = {"shaped": "a" * 40, "simplified": head * 40}
        return experiment(rng_seed, settings={"code": written_code(states), "trainer": "train.py"}).plan()

    original = plan(1, "b")
    assert declared(plan(2, "b"), original).earlier[0].rng_seed == 1
    assert declared(plan(2, "c"), original).earlier == ()
