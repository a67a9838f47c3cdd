"""Power against the exact noncentral t, against the published table, and against simulated experiments."""

import math

import msgspec
import numpy as np
import pytest
from scipy import stats
from support.outcomes.csv_outcomes import scales

from esper_ab.design.design import default_looks
from esper_ab.design.pairs_needed import pairs_needed
from esper_ab.design.power import assumed, observed, power_tables_of, replicates_needed
from esper_ab.design.scheme import PowerQuestion, scheme
from esper_ab.design.simulation import Simulation
from esper_ab.readers.external_plan import make_external_plan
from esper_ab.stats.pair import Pair, Pairs
from esper_ab.stats.sd_limits import sd_limits
from esper_ab.verdict.analysis_plan import Rule
from esper_ab.verdict.looks import progress_after

TWO_GROUPS = PowerQuestion(margin=3.5)


def make_rng():
    return np.random.default_rng(11)


def make_table(sd_run, rho, replicates, question=TWO_GROUPS, df=None):
    return power_tables_of([assumed(sd_run, rho, df)], replicates, question, make_rng())[0]


def test_the_spread_of_observed_pairs_has_limits():
    """Numbers of a first run: SDs of 9.49 and 17.31 in the groups, of 9.34 in the pairs, r = 0.92."""
    sd_run = math.sqrt((9.49**2 + 17.31**2) / 2.0)
    spread = observed(sd_run, 9.34, 5)
    assert spread.rho == pytest.approx(1.0 - 9.34**2 / (9.49**2 + 17.31**2))
    assert spread.rho == pytest.approx(0.776, abs=1e-3)
    assert (spread.sd, (spread.sd_low, spread.sd_high)) == (9.34, sd_limits(9.34, 5, 0.8))
    assumed_spread = assumed(sd_run, spread.rho)
    assert assumed_spread.sd == pytest.approx(spread.sd)
    table = power_tables_of([spread], (6,), PowerQuestion(margin=10.0), make_rng())[0]
    assert table.rows[0].smallest == pytest.approx(make_table(sd_run, spread.rho, (6,)).rows[0].smallest)


@pytest.mark.parametrize("replicates", [6, 9, 10])
@pytest.mark.parametrize("effect", [0.3, 1.0, 1.6])
def test_the_power_of_one_look_equals_the_noncentral_t(replicates, effect):
    simulation = Simulation(scheme(replicates, (replicates,), TWO_GROUPS), make_rng())
    df = replicates - 2
    information = replicates if replicates % 2 == 0 else replicates - 1 / replicates
    bound = stats.t.isf(0.025, df)
    assert simulation.power(effect) == pytest.approx(stats.nct.sf(bound, df, effect * math.sqrt(information)), rel=1e-9)
    assert simulation.expected_replicates(effect) == replicates


@pytest.mark.parametrize(("replicates", "power"), [(7, 0.54), (8, 0.64)])
def test_power_with_7_or_8_pairs_counts_only_claims_backed_by_sign_flips(replicates, power):
    """For a difference of one SD; the t-test alone has 0.60 and 0.67."""
    unadjusted_question = msgspec.structs.replace(TWO_GROUPS, positions_matter=False)
    plan, shared_scheme = (
        scheme(replicates, (replicates,), question)
        for question in (unadjusted_question, msgspec.structs.replace(unadjusted_question, alpha=0.01))
    )
    assert Simulation(plan, make_rng()).power(1.0) == pytest.approx(power, abs=0.02)
    separate_power = stats.nct.sf(stats.t.isf(0.005, replicates - 1), replicates - 1, math.sqrt(replicates))
    # 2 / 2^7 > 0.01: the sign-flip test cannot be required there.
    assert (Simulation(shared_scheme, make_rng()).power(1.0) == pytest.approx(separate_power, rel=1e-9)) == (
        replicates == 7
    )


@pytest.mark.parametrize(("looks", "effect"), [((7, 14), 1.0), ((8, 16), 1.5), ((7, 8, 9), 1.3)])
def test_the_power_of_looks_equals_the_share_of_simulated_claims(looks, effect):
    """The product takes every look of simulated experiments; at 7 and 8 pairs a claim also needs the sign-flip test."""
    question = PowerQuestion(margin=1.0, looks=looks, positions_matter=False)
    simulation = Simulation(scheme(looks[-1], looks, question), make_rng())
    replicates = tuple(map(str, range(looks[-1])))
    design = make_external_plan(("a", "b"), replicates, scales(), Rule(looks=looks)).design
    (contrast,) = design.comparisons
    courses = [
        progress_after(design, {contrast: make_pairs(d)}, looks[-1])[contrast]
        for d in make_rng().standard_normal((1_000, looks[-1])) + effect
    ]
    claims = [course.decision == "crossed" and course.direction > 0 for course in courses]
    used_replicates = [course.decided_at or looks[-1] for course in courses]
    assert simulation.power(effect) == pytest.approx(np.mean(claims), abs=0.035)
    assert simulation.expected_replicates(effect) == pytest.approx(np.mean(used_replicates), abs=0.25)


def make_pairs(d):
    return Pairs.of(
        Pair(replicate=index, a=70.0 + difference, b=70.0, position_a=0, position_b=0)
        for index, difference in enumerate(d.tolist())
    )


@pytest.mark.parametrize(
    ("rho", "replicates", "power", "used_replicates"),
    [
        (0.0, 10, 0.50, 10.0),
        (0.3, 10, 0.64, 10.0),
        (0.6, 10, 0.86, 10.0),
        (0.0, 20, 0.84, 17.3),
        (0.3, 20, 0.94, 16.2),
        (0.6, 20, 1.00, 14.7),
    ],
)
def test_the_power_equals_the_published_table(rho, replicates, power, used_replicates):
    """Runs with SD 3.5 points, difference 3.5 points."""
    (row,) = make_table(3.5, rho, (replicates,)).rows
    assert row.looks == default_looks(replicates)
    assert row.power == pytest.approx(power, abs=0.012)
    assert row.expected == pytest.approx(used_replicates, abs=0.15)


@pytest.mark.parametrize("replicates", [6, 8, 10, 20, 26])
def test_the_smallest_difference_is_found_with_80_percent_power(replicates):
    (row,) = make_table(3.5, 0.3, (replicates,)).rows
    smallest_row, row_below = (
        make_table(3.5, 0.3, (replicates,), PowerQuestion(margin=part * row.smallest)).rows[0] for part in (1.0, 0.95)
    )
    assert smallest_row.power == pytest.approx(0.8, abs=0.001)
    assert row_below.power < 0.79


def test_fewer_than_6_seeds_have_no_power():
    assert replicates_needed(500.0, None, PowerQuestion(margin=1.0), make_rng()).replicates is None
    (row,) = make_table(3.5, 0.0, (4,), df=9).rows
    assert (row.power, row.smallest, row.smallest_low, row.expected, row.nominal_p) == (0.0, None, None, None, ())


def test_sharing_alpha_among_comparisons_costs_power():
    question_of_one, question_of_three = (
        PowerQuestion(margin=3.5, looks=(8, 12), groups=3, comparisons=count) for count in (1, 3)
    )
    alone_table, shared_table = (
        make_table(3.5, 0.0, (10, 12), question) for question in (question_of_one, question_of_three)
    )
    assert [row.looks for row in shared_table.rows] == [(10,), (8, 12)]
    assert shared_table.rows[0].smallest > 1.1 * alone_table.rows[0].smallest
    assert shared_table.needed.replicates > alone_table.needed.replicates


@pytest.mark.parametrize(("sd", "margin"), [(3.15, 2.0), (2.0, 2.0), (7.0, 2.0), (0.1, 2.0)])
def test_the_number_of_seeds_needed_is_the_smallest_sufficient_even_number(sd, margin):
    question = PowerQuestion(margin=margin)
    result = replicates_needed(sd, None, question, make_rng())
    assert result.low == result.replicates == result.high

    def power(count):
        return Simulation(scheme(count, default_looks(count), question), make_rng()).power(margin / sd)

    assert result.replicates % 2 == 0
    assert power(result.replicates) > 0.797  # simulation error
    assert result.replicates == 6 or power(result.replicates - 2) < 0.803
    # Looks and the adjustment cost a few pairs beyond the plain test at a fixed number.
    pairs_of_one_look = pairs_needed(sd, 5, margin).pairs
    assert pairs_of_one_look <= result.replicates <= 1.1 * pairs_of_one_look + 4


def test_the_range_of_needed_seeds_follows_from_the_limits_of_the_sd():
    table = make_table(3.15 / math.sqrt(2.0), 0.0, (10,), PowerQuestion(margin=2.0), df=4)
    assert table.sd == pytest.approx(3.15)
    assert (table.sd_low, table.sd_high) == pytest.approx(sd_limits(3.15, 4, 0.8))
    assert table.needed.low < table.needed.replicates < table.needed.high
    assert table.needed.replicates == pytest.approx(22, abs=2)  # published: 22, range 13 to 76, at a fixed number
    assert (table.needed.low, table.needed.high) == (pytest.approx(13, abs=2), pytest.approx(76, abs=4))
    (row,) = table.rows
    assert row.smallest_low / row.smallest == pytest.approx(table.sd_low / table.sd)
    assert row.smallest_high / row.smallest == pytest.approx(table.sd_high / table.sd)


def test_power_tables_are_reproducible_for_one_generator_seed():
    """Numbers for one seed, so that those of a plan can be reproduced on another day."""
    table = make_table(3.0, 0.2, (6, 20), msgspec.structs.replace(TWO_GROUPS, looks=(10, 14, 20)), df=5)
    (_, row) = table.rows
    assert row.nominal_p == pytest.approx((0.0030506455159778224, 0.013115333199411092, 0.04350252128461109), rel=1e-9)
    assert (row.smallest, row.power) == pytest.approx((2.564384199495988, 0.97027), rel=1e-9)
    assert (table.needed.replicates, table.needed.low, table.needed.high) == (12, 8, 32)


@pytest.mark.parametrize(
    ("sd", "rho", "margin"), [(0.0, 0.0, 2.0), (1.0, 1.0, 2.0), (1.0, -1.5, 2.0), (1.0, 0.0, 0.0), (-1.0, 0.0, 1.0)]
)
def test_impossible_spreads_correlations_and_margins_are_refused(sd, rho, margin):
    with pytest.raises(ValueError, match="power needs"):
        make_table(sd, rho, (6,), PowerQuestion(margin=margin))


def test_futility_stops_cost_at_most_the_declared_power():
    row_with_stops, plain_row = (
        make_table(2.0, 0.0, (20,), PowerQuestion(margin=2.0, looks=(6, 10, 14, 20), futility=power)).rows[0]
        for power in (0.8, None)
    )
    assert plain_row.stops is None
    assert (row_with_stops.power, row_with_stops.expected, row_with_stops.smallest) == (
        plain_row.power,
        plain_row.expected,
        plain_row.smallest,
    )
    stops = row_with_stops.stops
    assert 0.0 < plain_row.power - stops.power < 0.2
    assert stops.expected < plain_row.expected
    assert stops.expected_none < 14.0 < stops.expected_none_without <= 20.0
    # simulated: 20 pairs, SD 2: 79.4 %; 16.0 and 13.2 pairs
    assert (stops.power, stops.expected, stops.expected_none) == pytest.approx((0.794, 16.0, 13.2), rel=0.02)
