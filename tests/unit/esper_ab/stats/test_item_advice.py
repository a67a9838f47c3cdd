"""Advice on more runs and items: predictions against new scores, and the cheapest plan against all plans."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esper_ab.stats.item_advice import item_advice
from esper_ab.stats.item_difference import ItemDifference, item_difference
from esper_ab.stats.item_scores import shared_items

TODAY = ItemDifference(
    level="trainings",
    name="t over runs and items",
    mean=1.0,
    se=4.0**0.5,
    df=50.0,
    t=0.5,
    p=0.6,
    items=200,
    clusters=200,
    effective_clusters=200.0,
    runs_a=10,
    runs_b=10,
    v_items=2.0,
    v_runs=2.5,
    v_residual=0.5,
    df_items=199.0,
    df_runs=18.0,
)


def draw(rng, runs, items, run_sd=0.02, item_sd=0.2, score_sd=0.3):
    """Draw graded scores of two groups; `item_sd` is the standard deviation of an item's difference."""
    shape = (2, runs, items)
    y = rng.normal(0.0, run_sd, (2, runs, 1)) + rng.normal(0.0, item_sd / 2**0.5, (2, 1, items))
    return shared_items(*(y + rng.normal(0.0, score_sd, shape)), paired=False)


def half_width(estimate):
    low, high = estimate.interval(0.05)
    return (high - low) / 2


@pytest.mark.parametrize("level", ["checkpoints", "trainings"])
def test_the_predicted_interval_width_agrees_with_new_scores(level):
    """The median over a hundred plans with the advised numbers."""
    rng = np.random.default_rng(1)
    sizes = {}
    for _ in range(60):
        difference_now = item_difference(draw(rng, 12, 150), level)
        advice = item_advice(difference_now, 0.05, factor=0.7, run_cost=100.0)
        assert advice.goal == pytest.approx(0.7 * half_width(difference_now))
        plans = {"items": (12, advice.items_needed)}
        if level == "trainings":
            plans["both"] = (advice.cheapest.runs, advice.cheapest.items)
        for name, (runs, items) in plans.items():
            if items is not None and items < 5_000:
                reached = half_width(item_difference(draw(rng, runs, items), level)) / advice.goal
                sizes.setdefault(name, []).append(reached)
    for reached in sizes.values():
        assert len(reached) > 30
        assert np.median(reached) == pytest.approx(1.0, abs=0.08)


def test_four_times_as_many_items_halve_the_interval_of_checkpoints():
    estimate = msgspec.structs.replace(TODAY, level="checkpoints", se=2.0**0.5, df=199.0)
    advice = item_advice(estimate, 0.05)
    assert 785 < advice.items_needed <= 800
    assert (advice.runs_needed, advice.cheapest) == (None, None)


def test_no_number_of_runs_compensates_for_too_few_items():
    advice = item_advice(TODAY, 0.05)
    assert advice.runs_needed is None  # 1.5 of 4 comes from items alone
    assert advice.items_needed is None
    assert item_advice(TODAY, 0.05, factor=0.8).runs_needed == 22
    assert item_advice(TODAY, 0.05, factor=0.8).items_needed < 1_000


@settings(deadline=None, max_examples=30)
@given(st.floats(1.0, 5_000.0), st.floats(0.4, 0.9), st.floats(0.1, 3.0), st.floats(0.1, 3.0), st.floats(0.0, 0.1))
def test_the_advised_numbers_of_runs_and_items_cost_least(run_cost, factor, v_runs, v_items, v_residual):
    se = (v_runs + v_items - v_residual) ** 0.5
    estimate = msgspec.structs.replace(TODAY, v_runs=v_runs, v_items=v_items, v_residual=v_residual, se=se)
    advice = item_advice(estimate, 0.05, factor=factor, run_cost=run_cost)
    single_changes = [(advice.runs_needed, 200), (10, advice.items_needed)]
    costs = [2 * runs * (run_cost + items) for runs, items in single_changes if runs is not None and items is not None]
    assert all(advice.cheapest.cost <= cost * (1 + 1e-12) for cost in costs)
    assert advice.cheapest.cost == 2 * advice.cheapest.runs * (run_cost + advice.cheapest.items)


def test_expensive_runs_are_replaced_by_items():
    cheap_plan = item_advice(TODAY, 0.05, run_cost=1.0).cheapest
    dear_plan = item_advice(TODAY, 0.05, run_cost=1e5).cheapest
    assert cheap_plan.runs > 1.4 * dear_plan.runs
    assert cheap_plan.items < dear_plan.items / 1.4


def test_no_item_advice_is_given_without_a_test():
    constant = item_difference(shared_items(np.ones((6, 20)), np.zeros((6, 20)), paired=False), "trainings")
    assert item_advice(constant, 0.05) is None
