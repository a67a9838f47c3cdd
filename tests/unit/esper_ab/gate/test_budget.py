"""Minutes become seeds and looks."""

import pytest

from esper_ab.gate.budget import MOST_SEEDS, Cost, affordable, least_pairs, looks, minutes_for


@pytest.mark.parametrize("at_once", [1, 2])
def test_as_many_pairs_are_planned_as_the_time_pays_for(at_once):
    cost = Cost(start_s=5.0, wave_s=10.0, at_once=at_once)
    pairs = affordable(cost, 300.0)
    assert cost.seconds(pairs) <= 300.0 < 1.25 * cost.seconds(pairs + at_once)


def test_kept_runs_cost_nothing():
    cost = Cost(start_s=0.0, wave_s=10.0, at_once=1)
    base_is_kept = Cost(start_s=0.0, wave_s=10.0, at_once=1, kept_runs=(30, 0))
    assert base_is_kept.seconds(20) == 0.5 * cost.seconds(20)
    assert base_is_kept.seconds(40) == cost.seconds(40) - 150.0
    assert Cost(start_s=1.0, wave_s=10.0, at_once=1, kept_runs=(9, 9)).seconds(9) == 1.0


def test_no_time_pays_for_nothing_and_much_for_a_maximum():
    cost = Cost(start_s=5.0, wave_s=10.0, at_once=1)
    assert affordable(cost, 8.0) == 0
    assert affordable(cost, 1e6) == MOST_SEEDS
    assert affordable(Cost(start_s=0.0, wave_s=0.0, at_once=1), 60.0) == MOST_SEEDS


@pytest.mark.parametrize("pairs", [6, 15, 40])
def test_the_minutes_that_a_refusal_names_pay_for_the_pairs(pairs):
    cost = Cost(start_s=5.0, wave_s=7.0, at_once=2)
    minutes = minutes_for(cost, pairs, spent_s=12.0)
    assert affordable(cost, 60.0 * minutes - 12.0) >= pairs
    assert affordable(cost, 60.0 * (minutes - 1) - 12.0) < pairs


def test_the_claim_not_worse_and_guardrails_need_more_pairs():
    assert [least_pairs(*case[:1], guarded=case[1]) for case in (("difference", False), ("not-worse", False))] == [
        6,
        15,
    ]
    assert least_pairs("difference", guarded=True) == 15


@pytest.mark.parametrize(
    ("seeds", "claim", "expected"),
    [
        (15, "not-worse", (15,)),
        (22, "not-worse", (22,)),
        (40, "not-worse", (20, 24, 30, 40)),
        (8, "difference", (8,)),
        (20, "difference", (14, 18, 20)),
    ],
)
def test_looks_begin_where_a_default_plan_looks_first_and_end_at_all_seeds(seeds, claim, expected):
    assert looks(seeds, claim, guarded=False) == expected
