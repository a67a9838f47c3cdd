"""Proportions of runs: published examples, the tests and intervals of other libraries, rules for every table."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
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


def compare_pairs(both_succeed, only_a_succeeds, only_b_succeeds, none_succeeds, success=1.0):
    a = [success] * (both_succeed + only_a_succeeds) + [0.0] * (only_b_succeeds + none_succeeds)
    b = [success] * both_succeed + [0.0] * only_a_succeeds + [success] * only_b_succeeds + [0.0] * none_succeeds
    return proportions(a, b, success, paired=True)


def compare_runs(x, n, y, m, success=1.0):
    return proportions([success] * x + [0.0] * (n - x), [success] * y + [0.0] * (m - y), success, paired=False)


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [((59, 6, 16, 80), -0.1186, -0.0046), ((1, 1, 7, 12), -0.507, -0.026), ((36, 12, 2, 0), 0.0569, 0.3404)],
)
def test_intervals_of_paired_proportions_equal_published_intervals(table, low, high):
    """Cavo et al. 2012 and Bentur et al. 2009, in Fagerland, Lydersen & Laake (2017), chapter 8; Newcombe (1998)."""
    assert compare_pairs(*table).newcombe(0.05) == pytest.approx((low, high), abs=6e-4 if low == -0.507 else 5e-5)


@settings(deadline=None)
@given(samples, ps)
def test_unpaired_proportions_agree_with_scipy_and_statsmodels(sample, p):
    x, n, y, m = sample
    comparison = compare_runs(*sample)
    fisher = stats.fisher_exact([[x, n - x], [y, m - y]])[1]
    assert comparison.name == "Boschloo's exact test"
    assert comparison.p <= fisher * (1.0 + 1e-6)
    if n == m and fisher < 0.9:  # otherwise scipy's, twice that of one side, differs by its definition
        assert comparison.p == pytest.approx(stats.boschloo_exact([[x, y], [n - x, m - y]], n=256).pvalue, rel=1e-6)
    expected = confint_proportions_2indep(x, n, y, m, method="newcomb", alpha=p)
    assert comparison.newcombe(p) == pytest.approx(expected, abs=1e-9)
    assert comparison.mean == pytest.approx(x / n - y / m, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [(6, 6), (6, 20), (9, 13), (15, 15)])
def test_boschloos_p_equals_an_enumeration_of_all_tables(n, m):
    """Enumerate all tables by scipy's Fisher test. No bound is exceeded at any common chance of success."""
    chances = np.linspace(0.0, 1.0, 801)
    outcome_laws = (stats.binom.pmf(np.arange(size + 1), size, chances[:, None]) for size in (n, m))
    law = np.einsum("ca,cb->cab", *outcome_laws)
    cells = [(x, y) for x in range(n + 1) for y in range(m + 1)]
    fisher = np.empty((n + 1, m + 1))
    boschloo = np.empty((n + 1, m + 1))
    for x, y in cells:
        fisher[x, y] = stats.fisher_exact([[x, n - x], [y, m - y]])[1]
        boschloo[x, y] = compare_runs(x, n, y, m).p
    for x, y in cells:
        expected = (law * (fisher <= fisher[x, y] * (1.0 + 1e-7))).sum(axis=(1, 2)).max()
        assert boschloo[x, y] == pytest.approx(expected, rel=1e-4)
        assert boschloo[x, y] >= expected * (1.0 - 1e-9)
    for bound in (0.05, 0.05 / 3.0, 0.01):
        assert (law * (boschloo <= bound)).sum(axis=(1, 2)).max() <= bound


def test_fishers_test_decides_with_more_than_a_million_tables():
    comparison = compare_runs(520, 1100, 480, 1000)
    assert comparison.name == "Fisher's exact test"
    assert comparison.p == pytest.approx(stats.fisher_exact([[520, 580], [480, 520]])[1], rel=1e-6)


def unpaired_interval(example, x, y):
    """Return the interval of x and y successes in as many runs as in `example`, without the p, which takes longer."""
    mean = x / example.runs_a - y / example.runs_b
    return msgspec.structs.replace(example, ones_a=x, ones_b=y, mean=mean).interval(0.05)


@settings(max_examples=20)
@given(samples)
def test_an_interval_needs_no_p(sample):
    x, n, y, m = sample
    assert unpaired_interval(compare_runs(0, n, 0, m), x, y) == pytest.approx(compare_runs(*sample).interval(0.05))


@pytest.mark.parametrize(("runs", "first_chance", "second_chance"), [(14, 0.95, 0.5), (20, 0.9, 0.5), (40, 0.8, 0.5)])
def test_unpaired_proportions_have_the_documented_power(runs, first_chance, second_chance):
    """Exact but for tables below a chance of 1e-5; the interval must exclude 0. Fisher's test needs 17, 23 and 44."""
    chances = np.outer(*(stats.binom.pmf(np.arange(runs + 1), runs, share) for share in (first_chance, second_chance)))
    example = compare_runs(0, runs, 0, runs)
    power = 0.0
    for x, y in np.argwhere(chances > 1e-5).tolist():
        low, high = unpaired_interval(example, x, y)
        if not low <= 0.0 <= high and compare_runs(x, runs, y, runs).p <= 0.05:
            power += chances[x, y]
    assert power >= 0.8


@given(tables, ps)
def test_paired_proportions_have_newcombes_interval(table, p):
    comparison = compare_pairs(*table)
    (_, wins_of_a, wins_of_b, _) = table
    assert comparison.p == (
        pytest.approx(stats.binomtest(wins_of_a, wins_of_a + wins_of_b).pvalue) if wins_of_a + wins_of_b else 1.0
    )
    low, high = counts.paired_interval(*(np.array([count]) for count in table), counts.z_of(p))
    assert comparison.newcombe(p) == pytest.approx((low[0], high[0]), abs=1e-6)


@given(tables, ps, st.sampled_from((1.0, 100.0)))
def test_swapping_the_groups_mirrors_the_interval(table, p, success):
    joint_successes, wins_of_a, wins_of_b, joint_failures = table
    comparison = compare_pairs(*table, success=success)
    swapped_result = compare_pairs(joint_successes, wins_of_b, wins_of_a, joint_failures)
    low, high = swapped_result.interval(p)
    assert comparison.interval(p) == pytest.approx((-success * high, -success * low), abs=1e-9 * success)
    assert (comparison.p, comparison.mean) == (swapped_result.p, pytest.approx(-success * swapped_result.mean))
    assert comparison.interval(p)[0] <= comparison.mean <= comparison.interval(p)[1]


@given(tables)
def test_only_discordant_pairs_are_evidence(table):
    _, wins_of_a, wins_of_b, _ = table
    evidence = compare_pairs(*table).log_evidence()
    assert evidence == pytest.approx(compare_pairs(0, wins_of_a, wins_of_b, 1).log_evidence(), abs=1e-9)
    assert evidence == pytest.approx(compare_pairs(2, wins_of_b, wins_of_a, 1).log_evidence(), abs=1e-9)
    assert compare_pairs(3, 0, 0, 4).log_evidence() == pytest.approx(0.0, abs=1e-12)


@given(st.integers(0, 12), st.integers(0, 12))
def test_the_evidence_is_a_martingale_if_the_groups_do_not_differ(x, y):
    """One more pair that disagrees, for either group with probability 1/2, keeps the expected evidence."""
    evidence_now, more_a, more_b = (
        math.exp(compare_pairs(1, *win_counts, 1).log_evidence()) for win_counts in ((x, y), (x + 1, y), (x, y + 1))
    )
    assert (more_a + more_b) / 2.0 == pytest.approx(evidence_now, rel=1e-9)


@example((0, 17, 0, 0), 2.0)  # whose share of 1 has an upper limit of 1, too
@given(tables, st.floats(2.0, 1e4))
def test_an_anytime_interval_contains_newcombes_interval(table, evidence):
    comparison = compare_pairs(*table)
    wide_interval = comparison.anytime_interval(evidence)
    narrow = comparison.newcombe(1.0 / evidence)
    if wide_interval is not None:
        assert wide_interval[0] <= narrow[0] < narrow[1] <= wide_interval[1]


@settings(deadline=None)
@given(tables, ps)
def test_the_interval_contains_newcombes_interval_for_discordant_pairs(table, p):
    joint_successes, wins_of_a, wins_of_b, joint_failures = table
    intervals = [
        compare_pairs(*table).newcombe(p),
        compare_pairs(0, wins_of_a, wins_of_b, joint_failures + joint_successes).newcombe(p),
    ]
    low, high = compare_pairs(*table).interval(p)
    assert low == pytest.approx(min(low for low, _ in intervals))
    assert high == pytest.approx(max(high for _, high in intervals))


@pytest.mark.parametrize(("pairs", "margin"), [(20, 0.105), (20, 0.165), (30, 0.07), (30, 0.12), (40, 0.05), (40, 0.1)])
def test_false_equivalence_of_paired_outcomes_stays_below_5_percent(pairs, margin):
    """Exact, at a true difference of the margin, with half of the other pairs at 1."""
    error_rate = 0.0
    for wins_of_a in range(pairs // 4):
        for joint_successes in range(pairs + 1 - wins_of_a):
            low, high = compare_pairs(joint_successes, wins_of_a, 0, pairs - joint_successes - wins_of_a).interval(0.05)
            if -margin < low and high < margin:
                other_pairs = pairs - wins_of_a
                error_rate += stats.binom.pmf(wins_of_a, pairs, margin) * stats.binom.pmf(
                    joint_successes, other_pairs, 0.5
                )
    assert error_rate <= 0.05


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
def test_false_equivalence_of_unpaired_outcomes_has_the_documented_rate(runs, margin, rate):
    """Exact, at a true difference of the margin, for the least favourable chances of success."""
    counts_of_ones = range(runs + 1)
    example = compare_runs(0, runs, 0, runs)
    limits = [[unpaired_interval(example, x, y) for y in counts_of_ones] for x in counts_of_ones]
    is_small = np.array([[-margin < low and high < margin for low, high in row] for row in limits])
    rates = [
        stats.binom.pmf(counts_of_ones, runs, chance + margin)
        @ is_small
        @ stats.binom.pmf(counts_of_ones, runs, chance)
        for chance in np.linspace(0.0, 1.0 - margin, 61)
    ]
    assert max(rates) == pytest.approx(rate, abs=0.0006)


@pytest.mark.parametrize("margin", [0.1, 0.15, 0.2])
def test_false_equivalence_stays_below_5_percent_with_a_look_after_every_pair(margin):
    """Exact over 200 pairs, at a true difference of the margin, if all pairs that disagree favour one group."""
    open_probabilities, error_rate = {0: 1.0}, 0.0  # probability by the number of pairs that disagree
    for pairs in range(1, 201):
        open_probabilities = {
            wins_of_a: (1.0 - margin) * open_probabilities.get(wins_of_a, 0.0)
            + margin * open_probabilities.get(wins_of_a - 1, 0.0)
            for wins_of_a in range(pairs + 1)
        }
        for wins_of_a in range(int(margin * pairs)) if pairs >= LEAST_OPEN_ENDED_PAIRS else ():
            low, high = compare_pairs(0, wins_of_a, 0, pairs - wins_of_a).anytime_interval(20.0)
            if -margin < low and high < margin:
                error_rate += open_probabilities.pop(wins_of_a)
    assert 0.0 < error_rate <= 0.05
