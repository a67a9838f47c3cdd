"""The table of simulated error rates against its entries and against new simulations."""

import numpy as np
import pytest
from simulation import procedure

from esper_ab.stats import error_rate_table as table
from esper_ab.stats.error_rates import LookPlan, Tail, far_tail, rate_of_skewness, rate_of_tail
from esper_ab.stats.skewness import skewness

ONE_OF_10 = LookPlan(looks="one look", first=10, comparisons=1)


def make_tail(count=1, pairs=20, depth=25.0):
    return Tail(count=count, pairs=pairs, mean=-depth, others=0.0, sd=1.0)


def make_differences(wanted_skewness, pairs, mean=0.7):
    """Return differences with this skewness against the claim, and this mean in SDs."""
    low = 0.0
    high = 30.0
    quantiles = np.linspace(0.01, 0.99, pairs)
    for _ in range(60):
        power = (low + high) / 2.0
        d = -(quantiles**power)
        low, high = (power, high) if -skewness(d) < wanted_skewness else (low, power)
    return (d - d.mean()) / d.std(ddof=1) + mean


def test_the_error_rate_at_a_table_entry_equals_the_entry():
    pairs_index = table.PAIRS.index(10)
    law_index = table.SKEWNESS.index(3.5)
    d = make_differences(table.SAMPLE[pairs_index][law_index], 10)
    assert rate_of_skewness(d, ONE_OF_10) == pytest.approx(table.SKEWED[pairs_index][0][law_index] / 100.0, rel=1e-6)
    rare_tail = make_tail(count=2)
    several_looks = LookPlan(looks="several looks", first=14, comparisons=8)
    rates = table.COLLAPSES[len(table.PAIRS) + table.PAIRS.index(14)][table.COMPARISONS.index(8)]
    share_index = table.SHARES.index(0.1)
    depth_index = table.DEPTHS.index(25.0)
    assert rate_of_tail(rare_tail, several_looks) == pytest.approx(rates[share_index][depth_index] / 100.0)
    looks_after_pairs = LookPlan(looks="after every pair", first=6, comparisons=1)
    assert rate_of_tail(rare_tail, looks_after_pairs) == pytest.approx(
        table.COLLAPSES[-1][0][share_index][depth_index] / 100.0
    )


def draw_skewed(rng, size, skew):
    shape = 4.0 / skew**2
    return (shape - rng.gamma(shape, size=size)) / shape**0.5


@pytest.mark.parametrize(
    ("looks", "kind"),
    [
        ((10,), "one look"),
        ((14, 20), "several looks"),
        ((16, 20, 30), "several looks"),
    ],
)
@pytest.mark.parametrize("comparisons", [1, 4])
def test_the_error_rates_agree_with_simulated_plans(looks, kind, comparisons):
    """Simulated by tests/simulation, with alpha passed on; the table has looks at other shares of the pairs."""
    rule = procedure.Rule(looks, paths=100_000)
    rng = np.random.default_rng(7)
    plan = LookPlan(looks=kind, first=looks[0], comparisons=comparisons)
    for law in (1, 2, 3):
        d = draw_skewed(rng, (4_000, comparisons, looks[-1]), table.SKEWNESS[law])
        observed_rate = (procedure.follow(d, rule, 2.0).crossed != 0).any(1).mean()
        sample_skewnesses = [sample[law] for sample in table.SAMPLE]
        observed_skewness = float(np.interp(np.log(looks[0]), np.log(table.PAIRS), sample_skewnesses))
        stated_rate = rate_of_skewness(make_differences(observed_skewness, looks[0]), plan)
        assert stated_rate is None or observed_rate == pytest.approx(stated_rate, abs=0.02 + 0.1 * stated_rate)


@pytest.mark.parametrize(
    ("share", "looks", "rate"),
    [
        (0.15, (10,), 0.20),
        (0.15, (14, 20), 0.115),
        (0.05, (20,), 0.36),
    ],
)
def test_rare_collapses_have_the_expected_error_rates(share, looks, rate):
    plan = LookPlan(looks="one look" if len(looks) == 1 else "several looks", first=looks[0], comparisons=1)
    rare_tail = make_tail(count=round(100 * share), pairs=100, depth=45.0)
    assert rate_of_tail(rare_tail, plan) == pytest.approx(rate, abs=0.03)


def test_the_error_rate_rises_with_comparisons_and_falls_with_pairs():
    plans = [LookPlan(looks="one look", first=10, comparisons=count) for count in (1, 2, 3, 8, 40)]
    rates = [rate_of_skewness(make_differences(1.0, 10), plan) for plan in plans]
    assert rates == sorted(rates)
    rates = [rate_of_tail(make_tail(), LookPlan(looks="one look", first=n, comparisons=1)) for n in (10, 11, 30, 90)]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize("law", [2, 3, 4])
def test_the_stated_error_rate_covers_the_true_rate_in_half_of_false_claims(law):
    rng = np.random.default_rng(law)
    n = 10
    d = draw_skewed(rng, (20_000, n), table.SKEWNESS[law])
    t = d.mean(1) / d.std(1, ddof=1) * n**0.5
    claimed_differences = d[t > 2.262]
    stated_rates = [rate_of_skewness(differences, ONE_OF_10) or 0.05 for differences in claimed_differences]
    true_rate = table.SKEWED[table.PAIRS.index(n)][0][law] / 100.0
    assert np.mean(np.array(stated_rates) >= true_rate) == pytest.approx(0.5, abs=0.1)


def test_most_normal_differences_have_no_stated_error_rate():
    d = np.random.default_rng(3).standard_normal((2_000, 10))
    have_rate = [rate_of_skewness(differences, ONE_OF_10) is not None for differences in d]
    assert np.mean(have_rate) == pytest.approx(0.2, abs=0.03)


def test_a_very_large_difference_has_no_stated_error_rate():
    assert rate_of_skewness(make_differences(2.0, 10, mean=1.0), ONE_OF_10) > 0.2
    assert rate_of_skewness(make_differences(2.0, 10, mean=20.0), ONE_OF_10) is None


@pytest.mark.parametrize(
    ("differences", "count"),
    [
        ([1.0, 1.1, 0.9, 1.2, 1.0, -19.0], 1),
        ([1.0, 1.1, 0.9, 1.2, 1.0, 19.0], None),  # on the side of the claim
        ([1.0, 1.1, 0.9, 1.2, -19.0, -20.0], 2),
        ([1.0, 1.1, 0.9, -18.0, -19.0, -20.0], None),  # half of the differences: not rare
        ([1.0, 2.0, 3.0, 4.0, 5.0, -2.0], None),
        ([1.0, 1.0, 1.0, 1.0, 1.0, -19.0], None),
    ],
)
def test_a_far_tail_is_separated_by_more_than_the_range_of_the_rest(differences, count):
    tail = far_tail(np.array(differences))
    assert (tail and tail.count) == count
