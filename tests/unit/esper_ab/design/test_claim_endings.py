"""The chance of each verdict of a plan that claims NOT WORSE."""

import pytest
from scipy import stats

from esper_ab.design.claim_endings import DIFFERENCES, claim_endings, rows_of
from esper_ab.design.scheme import PowerQuestion, generator_of, scheme
from esper_ab.design.simulation import Simulation


def simulation(looks, **changes):
    question = PowerQuestion(margin=2.0, not_worse=True, positions_matter=False, **changes)
    return Simulation(scheme(looks[-1], looks, question), generator_of(question), 40_000)


@pytest.mark.parametrize("looks", [(15,), (20, 30)])
def test_a_group_at_the_margin_is_called_not_worse_with_probability_alpha(looks):
    at_margin = claim_endings(simulation(looks), 0.1)[DIFFERENCES.index(-1.0)]
    assert at_margin.better + at_margin.not_worse == pytest.approx(0.05, abs=0.005)
    assert at_margin.better + at_margin.not_worse + at_margin.worse + at_margin.undecided == pytest.approx(1.0)


def test_the_power_where_nothing_differs_is_that_of_the_one_sided_t():
    endings = claim_endings(simulation((16,)), 0.6)[DIFFERENCES.index(0.0)]
    exact = stats.nct.sf(stats.t.isf(0.05, 15), 15, 0.6 * 4.0)
    assert simulation((16,)).power(0.6) == pytest.approx(exact, abs=1e-6)
    assert endings.better + endings.not_worse + endings.worse >= exact - 0.01
    assert endings.replicates == 16.0


def test_a_plan_stops_early_where_the_claim_is_easily_shown():
    endings = claim_endings(simulation((20, 30)), 3.0)[DIFFERENCES.index(0.0)]
    assert endings.replicates == pytest.approx(20.0)
    assert endings.undecided == 0.0


def test_too_few_seeds_decide_nothing():
    endings = claim_endings(simulation((14,)), 3.0)
    assert {ending.undecided for ending in endings} == {1.0}
    assert list(rows_of(endings)) == ["better", "not worse", "worse", "undecided"]


def test_several_comparisons_share_alpha():
    alone = simulation((16,)).power(0.6)
    shared = simulation((16,), comparisons=5).power(0.6)
    assert shared == pytest.approx(stats.nct.sf(stats.t.isf(0.01, 15), 15, 0.6 * 4.0), abs=1e-6)
    assert shared < alone
