"""Differences on items: the package follows the simulated rules, and the page shows the stored rates."""

import numpy as np
import pytest
from item_rate_page import (
    LEAST_CHECKPOINT_CLUSTERS,
    LEAST_TRAINING_CLUSTERS,
    MOST_MISSED,
    claims,
    limit,
    stored,
    tables,
)
from item_rates import EXACT, LAYOUTS, PAGE, simulate
from scipy import stats
from simulation.items import LEAST_RUNS, Law, Layout, draw, exact
from simulation.items import tests as rules

from esper_ab.stats.item_difference import item_difference
from esper_ab.stats.item_scores import own_items, shared_items
from esper_ab.stats.proportions import proportions

HIGHEST = 6.7  # percent: the exceptions on the page


def scores_of(layout, a, b, paired):
    clusters = np.repeat(np.arange(len(layout.sizes)), layout.sizes)
    tasks = None if layout.tasks == 1 else clusters // (len(layout.sizes) // layout.tasks)
    if layout.shared:
        return shared_items(a, b, paired=paired, clusters=clusters, tasks=tasks)
    return own_items(a, b, paired=paired, clusters=(clusters, clusters + len(layout.sizes)))


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(
    ("runs", "paired", "binary"), [(1, False, True), (3, True, False), (6, False, True), (7, True, True)]
)
def test_the_package_follows_the_simulated_item_rules(name, runs, paired, binary):
    layout = LAYOUTS[name]
    law = Law(runs=runs, binary=binary, points=2.0, interaction=0.5, paired=paired, effect=3.0)
    sample = draw(np.random.default_rng(1), 3, layout, law)
    expected = rules(sample.a, sample.b, layout, paired=paired)
    for experiment in range(3):
        scores = scores_of(layout, sample.a[experiment], sample.b[experiment], paired)
        for level in ("checkpoints", "trainings"):
            result = item_difference(scores, level)
            if level == "trainings" and runs < LEAST_RUNS:
                assert result.t is None
                continue
            if result.degenerate:  # too few items differ, a rule that the simulation lacks
                assert layout.items == 20
                continue
            simulated_test = expected[level]
            assert result.mean == pytest.approx(simulated_test.mean[experiment], rel=1e-4)
            assert result.se**2 == pytest.approx(
                simulated_test.variance[experiment], rel=1e-4
            )  # graded scores have 32 bits
            assert result.df == pytest.approx(simulated_test.df[experiment], rel=1e-3)


@pytest.mark.parametrize("name", EXACT)
def test_the_simulated_exact_test_equals_that_of_the_package(name):
    law = Law(runs=1, binary=True, points=3.0, interaction=0.6, effect=5.0)
    sample = draw(np.random.default_rng(2), 20, EXACT[name], law)
    is_claimed, is_missed = exact(sample.a[:, 0], sample.b[:, 0], sample.true_here)
    for experiment, true_difference in enumerate(sample.true_here):
        a, b = (group[experiment, 0].astype(float).tolist() for group in (sample.a, sample.b))
        result = proportions(a, b, 1.0, paired=True)
        low, high = result.interval(0.05)
        assert is_claimed[experiment] == (result.p <= 0.05 and not low <= 0.0 <= high)
        assert is_missed[experiment] == (not low <= true_difference <= high)


def test_the_item_rates_page_shows_the_stored_numbers():
    """Made by scripts/item_rates --page."""
    assert tables(stored()) in PAGE.read_text(encoding="utf-8")


def test_stored_rates_of_false_claims_above_five_percent_are_listed_on_the_page():
    rates = claims(stored())
    assert len(rates) > 60
    words_above = [words for words, rate in rates if rate["percent"] > limit(rate)]
    page = PAGE.read_text(encoding="utf-8")
    assert all(words in page for words in words_above)
    assert max(rate["percent"] for _, rate in rates) <= HIGHEST


def test_stored_intervals_have_the_required_coverage():
    """In at least 94 % of experiments, within three standard errors, with three runs or more."""
    numbers = stored()
    rates = [row["missed"] for row in numbers["exact"]]
    for row in numbers["rows"]:
        if row["effective"] >= LEAST_TRAINING_CLUSTERS and "trainings" in row:
            rates.append(row["trainings"]["missed"])
        if row["effective"] >= LEAST_CHECKPOINT_CLUSTERS:
            rates.append(row["checkpoints"]["missed"])
    assert len(rates) > 80
    assert [
        rate for rate in rates if rate["percent"] > MOST_MISSED + 300.0 * (0.06 * 0.94 / rate["experiments"]) ** 0.5
    ] == []


@pytest.mark.parametrize(
    ("layout", "law", "level"),
    [
        (Layout(sizes=(1,) * 100), Law(runs=6, binary=True, points=3.0, interaction=0.0), "trainings"),
        (Layout(sizes=(1,) * 100), Law(runs=6, binary=False, points=1.0, interaction=0.6, paired=True), "trainings"),
        (Layout(sizes=(5,) * 20), Law(runs=1, binary=True, points=0.0, interaction=0.6), "checkpoints"),
        (Layout(sizes=(1, 3, 10) * 10), Law(runs=2, binary=False, points=3.0, interaction=0.6), "checkpoints"),
    ],
)
def test_a_new_simulation_finds_at_most_five_percent_of_intervals_wrong(layout, law, level):
    number = 2_000
    missed_count = simulate("anew", layout, law, number)[level]
    assert missed_count / number <= 0.05 + 3 * (0.05 * 0.95 / number) ** 0.5


@pytest.mark.parametrize("groups", [4, 9, 20])
@pytest.mark.parametrize(
    ("layout", "law", "level"),
    [
        (Layout(sizes=(1,) * 20), Law(runs=1, binary=False, points=0.0, interaction=0.6), "checkpoints"),
        (Layout(sizes=(10,) * 20), Law(runs=1, binary=True, points=0.0, interaction=0.6), "checkpoints"),
        (Layout(sizes=(1,) * 100), Law(runs=6, binary=False, points=3.0, interaction=0.6), "trainings"),
        (Layout(sizes=(10,) * 10), Law(runs=6, binary=True, points=3.0, interaction=0.6), "trainings"),
    ],
)
def test_the_best_group_is_ruled_out_in_at_most_five_percent(layout, law, level, groups):
    """By Bonferroni: as many one-sided tests as there are other groups, each at its share of 5 %."""
    rng = np.random.default_rng(6)
    number = 6_000
    ruled_out = 0
    for _ in range(number // 1_000):
        sample = draw(rng, 1_000, layout, law)
        test = rules(sample.a, sample.b, layout, paired=False)[level]
        true = sample.true_here if level == "checkpoints" else sample.true
        bound = stats.t.isf(0.05 / (groups - 1), test.df) * np.sqrt(test.variance)
        ruled_out += int(np.sum(np.abs(test.mean - true) > bound))  # either group may be the best one
    rate = ruled_out / (2 * number)
    error = (0.05 / (groups - 1) / (2 * number)) ** 0.5
    assert (groups - 1) * (rate - 3 * error) <= 0.05


def test_a_test_of_run_means_claims_differences_that_vanish_on_new_items():
    """Why items count: a group that learned other items."""
    law = Law(runs=6, binary=False, points=0.0, interaction=0.6)
    counted = simulate("anew", Layout(sizes=(10,) * 20), law, 500)
    assert counted["these items claimed"] > 0.5 * 500
    assert counted["trainings claimed"] < 0.08 * 500


def test_a_test_of_items_claims_differences_that_vanish_in_new_runs():
    """Why runs count: two checkpoints differ, and the groups do not."""
    law = Law(runs=6, binary=False, points=3.0, interaction=0.0)
    counted = simulate("anew", Layout(sizes=(1,) * 200), law, 500)
    assert counted["these runs of new"] > 0.3 * 500
    assert counted["trainings"] < 0.08 * 500
