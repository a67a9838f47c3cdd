"""Plans resampled from stored pairs: the same claims as the product's rule, one plan at a time."""

import numpy as np
import pytest
import resampled_plans
from support.plans import fake_plans

from esper_ab.stats.pair import Pair, Pairs
from esper_ab.verdict.looks import progress_after

LAWS = {
    "normal": lambda rng, n: rng.normal(0.8, 1.0, n),
    "with a rare collapse": lambda rng, n: rng.normal(0.8, 0.5, n) - 8.0 * (rng.random(n) < 0.1),
    "mostly equal": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.normal(2.0, 1.0, n)),
}


def direction_by_the_product(design, differences):
    """Return the direction that the product claims for the pairs of a plan."""
    pairs = Pairs.of(
        Pair(replicate=place, a=float(value), b=0.0, position_a=0, position_b=1)
        for place, value in enumerate(differences)
    )
    (contrast,) = design.comparisons
    progress = progress_after(design, {contrast: pairs}, len(differences))[contrast]
    return progress.direction if progress.decision == "crossed" else 0


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("pairs", [6, 8, 10, 14, 20, 30])
def test_a_resampled_plan_claims_what_the_product_claims(law, pairs):
    design = fake_plans.plan(seeds=pairs).design
    assert not design.adjusted
    rng = np.random.default_rng(pairs)
    stored = np.round(LAWS[law](rng, 12), 2)
    places = rng.integers(12, size=(40, pairs))
    claimed = resampled_plans.directions(stored, places, resampled_plans.rule_of(pairs))
    expected = [direction_by_the_product(design, stored[row]) for row in places]
    if law == "normal":
        assert np.count_nonzero(claimed) > 0
    assert claimed.tolist() == expected


def test_the_chance_counts_claims_in_one_direction_only():
    differences = np.random.default_rng(1).normal(1.5, 1.0, 12)
    right, wrong = (resampled_plans.chance(differences, 10, direction) for direction in (1.0, -1.0))
    assert right > 0.9
    assert wrong < 0.01


def test_the_fewest_pairs_are_those_of_the_first_plan_with_the_chance():
    assert resampled_plans.fewest_pairs(lambda pairs: pairs / 100.0, 0.2) == 20
    assert resampled_plans.fewest_pairs(lambda pairs: 0.0, 0.2) is None
