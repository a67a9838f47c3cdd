"""Proportions of runs: published examples, other libraries' tests and intervals, what holds of every table."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulation import counts
from statsmodels.stats.proportion import confint_proportions_2indep

from esper_ab.stats.least_pairs import LEAST_OPEN_ENDED_PAIRS
from esper_ab.stats.proportions import proportions

tables = st.tuples(*[st.integers(0, 25)] * 4).filter(lambda table: sum(table) > 0)
samples = st.tuples(st.integers(1, 40), st.integers(1, 40)).flatmap(
    lambda sizes: st.tuples(st.integers(0, sizes[0]), st.just(sizes[0]), st.integers(0, sizes[1]), st.just(sizes[1]))
)
ps = st.floats(1e-6, 0.5)


def of_pairs(both, only_a, only_b, neither, one=1.0):
    a = [one] * (both + only_a) + [0.0] * (only_b + neither)
    b = [one] * both + [0.0] * only_a + [one] * only_b + [0.0] * neither
    return proportions(a, b, one, paired=True)


def of_runs(x, n, y, m, one=1.0):
    return proportions([one] * x + [0.0] * (n - x), [one] * y + [0.0] * (m - y), one, paired=False)


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [((59, 6, 16, 80), -0.1186, -0.0046), ((1, 1, 7, 12), -0.507, -0.026), ((36, 12, 2, 0), 0.0569, 0.3404)],
)
def test_published_intervals_of_pairs(table, low, high):
    """Cavo et al. 2012 and Bentur et al. 2009, in Fagerland, Lydersen & Laake (2017), chapter 8; Newcombe (1998)."""
    assert of_pairs(*table).newcombe(0.05) == pytest.approx((low, high), abs=6e-4 if low == -0.507 else 5e-5)


@settings(deadline=None)
@given(samples, ps)
def test_runs_agree_with_other_libraries(sample, p):
    x, n, y, m = sample
    found = of_runs(*sample)
    fisher = stats.fisher_exact([[x, n - x], [y, m - y]])[1]
    assert found.name == "Boschloo's exact test"
    assert found.p <= fisher * (1.0 + 1e-6)
    if n == m and fisher < 0.9:  # otherwise scipy's, twice that of one side, differs by its definition
        assert found.p == pytest.approx(stats.boschloo_exact([[x, y], [n - x, m - y]]).pvalue, rel=1e-6)
    expected = confint_proportions_2indep(x, n, y, m, method="newcomb", alpha=p)
    assert found.newcombe(p) == pytest.approx(expected, abs=1e-9)
    assert found.mean == pytest.approx(x / n - y / m, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(6, 6), (6, 20), (9, 13), (15, 15)])
def test_boschloo_s_p_is_the_share_of_tables_as_unlikely_by_fisher_at_the_least_favourable_chance(n, m):
    """All tables, by scipy's Fisher. No bound is exceeded, at any chance that the groups share."""
    chances = np.linspace(0.0, 1.0, 801)
    likely = (stats.binom.pmf(np.arange(size + 1), size, chances[:, None]) for size in (n, m))
    law = np.einsum("ca,cb->cab", *likely)
    every = [(x, y) for x in range(n + 1) for y in range(m + 1)]
    fisher = np.empty((n + 1, m + 1))
    found = np.empty((n + 1, m + 1))
    for x, y in every:
        fisher[x, y] = stats.fisher_exact([[x, n - x], [y, m - y]])[1]
        found[x, y] = of_runs(x, n, y, m).p
    for x, y in every:
        expected = (law * (fisher <= fisher[x, y] * (1.0 + 1e-7))).sum(axis=(1, 2)).max()
        assert found[x, y] == pytest.approx(expected, rel=1e-4)
        assert found[x, y] >= expected * (1.0 - 1e-9)
    for bound in (0.05, 0.05 / 3.0, 0.01):
        assert (law * (found <= bound)).sum(axis=(1, 2)).max() <= bound


def test_fisher_s_test_decides_where_there_are_more_than_a_million_tables():
    found = of_runs(520, 1100, 480, 1000)
    assert found.name == "Fisher's exact test"
    assert found.p == pytest.approx(stats.fisher_exact([[520, 580], [480, 520]])[1], rel=1e-6)


@pytest.mark.parametrize(("runs", "first", "second"), [(14, 0.95, 0.5), (20, 0.9, 0.5), (40, 0.8, 0.5)])
def test_unpaired_runs_find_these_differences_in_four_of_five_experiments(runs, first, second):
    """Exact, with the interval that must exclude 0; Fisher's test needs 17, 23 and 44 runs."""
    found = 0.0
    for x in range(runs + 1):
        for y in range(runs + 1):
            one = of_runs(x, runs, y, runs)
            low, high = one.interval(0.05)
            if one.p <= 0.05 and not low <= 0.0 <= high:
                found += stats.binom.pmf(x, runs, first) * stats.binom.pmf(y, runs, second)
    assert found >= 0.8


@given(tables, ps)
def test_pairs_are_a_binomial_and_an_interval_that_is_the_written_formula(table, p):
    found = of_pairs(*table)
    (_, only_a, only_b, _) = table
    assert found.p == (pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue) if only_a + only_b else 1.0)
    low, high = counts.paired_interval(*(np.array([count]) for count in table), counts.z_of(p))
    assert found.newcombe(p) == pytest.approx((low[0], high[0]), abs=1e-6)


@given(tables, ps, st.sampled_from((1.0, 100.0)))
def test_groups_may_be_exchanged_and_percent_may_be_meant(table, p, one):
    both, only_a, only_b, neither = table
    found = of_pairs(*table, one=one)
    other = of_pairs(both, only_b, only_a, neither)
    low, high = other.interval(p)
    assert found.interval(p) == pytest.approx((-one * high, -one * low), abs=1e-9 * one)
    assert (found.p, found.mean) == (other.p, pytest.approx(-one * other.mean))
    assert found.interval(p)[0] <= found.mean <= found.interval(p)[1]


@given(tables)
def test_the_evidence_is_that_of_the_pairs_that_disagree(table):
    _, only_a, only_b, _ = table
    found = of_pairs(*table).log_evidence()
    assert found == pytest.approx(of_pairs(0, only_a, only_b, 1).log_evidence(), abs=1e-9)
    assert found == pytest.approx(of_pairs(2, only_b, only_a, 1).log_evidence(), abs=1e-9)
    assert of_pairs(3, 0, 0, 4).log_evidence() == pytest.approx(0.0, abs=1e-12)


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_evidence_is_a_martingale_where_groups_do_not_differ(x, y):
    """One more pair that disagrees, for either group with probability 1/2, leaves its expectation as it is."""
    now, more, other = (math.exp(of_pairs(1, *one, 1).log_evidence()) for one in ((x, y), (x + 1, y), (x, y + 1)))
    assert (more + other) / 2.0 == pytest.approx(now, rel=1e-9)


@given(tables, st.floats(2.0, 1e4))
def test_an_anytime_interval_holds_newcombes_and_has_a_width(table, evidence):
    found = of_pairs(*table)
    wide = found.anytime_interval(evidence)
    narrow = found.newcombe(1.0 / evidence)
    if wide is not None:
        assert wide[0] <= narrow[0] < narrow[1] <= wide[1]


@settings(deadline=None)
@given(tables, ps)
def test_an_interval_holds_newcombes_and_that_of_the_pairs_that_disagree(table, p):
    both, only_a, only_b, neither = table
    intervals = [of_pairs(*table).newcombe(p), of_pairs(0, only_a, only_b, neither + both).newcombe(p)]
    low, high = of_pairs(*table).interval(p)
    assert low == pytest.approx(min(low for low, _ in intervals))
    assert high == pytest.approx(max(high for _, high in intervals))


@pytest.mark.parametrize(("pairs", "margin"), [(20, 0.105), (20, 0.165), (30, 0.07), (30, 0.12), (40, 0.05), (40, 0.1)])
def test_equivalence_errs_in_one_case_of_twenty_where_all_pairs_that_disagree_favour_one_group(pairs, margin):
    """Exact, at a true difference of the margin, with half of the other pairs at 1."""
    wrong = 0.0
    for only_a in range(pairs // 4):
        for both in range(pairs + 1 - only_a):
            low, high = of_pairs(both, only_a, 0, pairs - both - only_a).interval(0.05)
            if -margin < low and high < margin:
                rest = pairs - only_a
                wrong += stats.binom.pmf(only_a, pairs, margin) * stats.binom.pmf(both, rest, 0.5)
    assert wrong <= 0.05


@pytest.mark.parametrize(
    ("runs", "margin", "rate"),
    [
        (15, 0.45, 0.045),
        (15, 0.5, 0.051),
        (15, 0.6, 0.061),
        (15, 0.7, 0.070),
        (20, 0.5, 0.054),
        (21, 0.45, 0.047),
    ],
)
def test_equivalence_of_unpaired_runs_errs_at_wide_margins_as_often_as_the_page_says(runs, margin, rate):
    """Exact, at a true difference of the margin, for the least favourable chances of success."""
    counts_of_ones = range(runs + 1)
    limits = [[of_runs(x, runs, y, runs).interval(0.05) for y in counts_of_ones] for x in counts_of_ones]
    small = np.array([[-margin < low and high < margin for low, high in row] for row in limits])
    rates = [
        stats.binom.pmf(counts_of_ones, runs, chance + margin) @ small @ stats.binom.pmf(counts_of_ones, runs, chance)
        for chance in np.linspace(0.0, 1.0 - margin, 61)
    ]
    assert max(rates) == pytest.approx(rate, abs=0.0006)


@pytest.mark.parametrize("margin", [0.1, 0.15, 0.2])
def test_a_look_after_every_pair_finds_equivalence_wrongly_in_at_most_one_course_of_twenty(margin):
    """Exact over 200 pairs, at a true difference of the margin, where all pairs that disagree favour one group."""
    undecided, wrong = {0: 1.0}, 0.0  # probability by the number of pairs that disagree
    for pairs in range(1, 201):
        undecided = {
            only_a: (1.0 - margin) * undecided.get(only_a, 0.0) + margin * undecided.get(only_a - 1, 0.0)
            for only_a in range(pairs + 1)
        }
        for only_a in range(int(margin * pairs)) if pairs >= LEAST_OPEN_ENDED_PAIRS else ():
            low, high = of_pairs(0, only_a, 0, pairs - only_a).anytime_interval(20.0)
            if -margin < low and high < margin:
                wrong += undecided.pop(only_a)
    assert 0.0 < wrong <= 0.05
