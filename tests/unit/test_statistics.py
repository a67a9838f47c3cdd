"""The statistics against scipy, against published numbers, and against rules that hold for all inputs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import TTestPower

from esper_ab.design.pairs_needed import POWER, pairs_needed, power, smallest_resolvable
from esper_ab.stats.descriptive.hedges_g import correction, hedges_g
from esper_ab.stats.descriptive.improvement import in_words, probability_of_improvement
from esper_ab.stats.descriptive.mann_whitney import mann_whitney
from esper_ab.stats.descriptive.sign_flip import sign_flip, smallest_p
from esper_ab.stats.least_pairs import LEAST_PAIRS
from esper_ab.stats.paired_difference import paired_difference

accuracies = st.floats(0.0, 100.0, allow_nan=False).map(lambda x: round(x, 3))
paired = st.lists(st.tuples(accuracies, accuracies), min_size=2, max_size=12)


def columns(rows):
    return [a for a, _ in rows], [b for _, b in rows]


@given(paired)
def test_paired_difference_equals_scipy(rows):
    a, b = columns(rows)
    result = paired_difference(a, b)
    assume(not result.degenerate)
    expected = stats.ttest_rel(a, b)
    interval = expected.confidence_interval(0.95)
    assert result.t == pytest.approx(expected.statistic, rel=1e-12, abs=1e-12)
    assert result.p == pytest.approx(expected.pvalue, rel=1e-11, abs=1e-12)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), rel=1e-12, abs=1e-12)
    assert result.df == len(rows) - 1


@given(paired)
def test_swapping_groups_flips_the_sign(rows):
    a, b = columns(rows)
    there, back = paired_difference(a, b), paired_difference(b, a)
    assert there.mean == -back.mean
    assert there.p == back.p
    if there.low is not None:
        assert (there.low, there.high) == (-back.high, -back.low)
    assert sign_flip(a, b) == sign_flip(b, a)
    wins, losses = probability_of_improvement(a, b), probability_of_improvement(b, a)
    assert (wins.wins, wins.ties, wins.losses) == (losses.losses, losses.ties, losses.wins)
    assert wins.a12 + losses.a12 == pytest.approx(1.0, abs=1e-12)
    g, minus_g = hedges_g(a, b), hedges_g(b, a)
    assert g is None if minus_g is None else g == pytest.approx(-minus_g, rel=1e-12)
    assert mann_whitney(a, b).p == pytest.approx(mann_whitney(b, a).p, rel=1e-12)


@given(paired, st.randoms(use_true_random=False))
def test_the_order_of_pairs_is_irrelevant(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = paired_difference(*columns(rows)), paired_difference(*columns(shuffled))
    assert one.mean == other.mean
    assert one.p == (None if other.p is None else pytest.approx(other.p, rel=1e-9, abs=1e-15))
    assert sign_flip(*columns(rows)).p == sign_flip(*columns(shuffled)).p
    assert probability_of_improvement(*columns(rows)) == probability_of_improvement(*columns(shuffled))


@given(st.lists(st.tuples(accuracies, accuracies), min_size=1, max_size=8))
def test_sign_flip_equals_plain_enumeration(rows):
    a, b = columns(rows)
    d = [x - y for x, y in rows]
    patterns = [abs(math.fsum(s * x for s, x in zip(signs, d, strict=True)))
                for signs in itertools.product((1, -1), repeat=len(d))]
    observed = abs(math.fsum(d))
    expected = sum(total >= observed - 1e-10 for total in patterns) / len(patterns)
    result = sign_flip(a, b)
    assert result.p == pytest.approx(expected, abs=1e-15)
    assert result.exact
    assert result.p >= result.smallest_p


def test_sign_flip_equals_scipy():
    rng = np.random.default_rng(4)
    a, b = rng.normal(70, 3, 9), rng.normal(68, 3, 9)
    expected = stats.permutation_test(
        (a - b,), lambda x: np.mean(x), permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert sign_flip(a, b).p == pytest.approx(expected.pvalue, abs=1e-12)


def test_sign_flip_stops_at_what_it_can_enumerate():
    a = np.arange(21.0)
    assert sign_flip(a[:20], np.zeros(20)).exact
    beyond = sign_flip(a, np.zeros(21))
    assert beyond.p is None
    assert not beyond.exact


@pytest.mark.parametrize(("pairs", "p"), [(1, 1.0), (3, 0.25), (4, 0.125), (5, 0.0625), (6, 0.03125), (8, 0.0078125)])
def test_smallest_p(pairs, p):
    assert smallest_p(pairs) == p
    assert sign_flip(np.arange(1.0, pairs + 1), np.zeros(pairs)).p == p


@given(paired)
def test_mann_whitney_equals_scipy(rows):
    a, b = columns(rows)
    result = mann_whitney(a, b)
    assume(len({*a, *b}) > 1)
    expected = stats.mannwhitneyu(a, b, method="exact" if result.exact else "asymptotic")
    assert (result.u, result.p) == (expected.statistic, expected.pvalue)
    assert result.exact == (len({*a, *b}) == len(a) + len(b))


@pytest.mark.parametrize("shift", [0.0, 0.15, 0.4])
def test_mann_whitney_of_many_runs_is_normal_and_close_to_the_exact(shift):
    draw = np.random.default_rng(3)
    a, b = draw.normal(shift, 1.0, 101), draw.normal(0.0, 1.0, 100)
    many, few = mann_whitney(a, b), mann_whitney(a[:100], b)
    assert (many.exact, few.exact) == (False, True)
    for one, x in ((many, a), (few, a[:100])):
        assert one.p == pytest.approx(stats.mannwhitneyu(x, b, method="exact").pvalue, abs=0.001)


def test_mann_whitney_of_equal_runs_is_no_evidence():
    assert mann_whitney([5.0, 5.0], [5.0, 5.0]).p == 1.0


@given(paired)
def test_a12_is_u_over_all_combinations(rows):
    a, b = columns(rows)
    assert probability_of_improvement(a, b).a12 == pytest.approx(mann_whitney(a, b).u / len(rows) ** 2, abs=1e-12)


def test_improvement_in_words():
    result = probability_of_improvement([3.0, 1.0, 2.0], [1.0, 2.0, 2.0])
    assert in_words("x", "y", result) == "x beats y in 1 of 3 pairs, 1 tied"


@given(st.lists(accuracies, min_size=2, max_size=9), st.lists(accuracies, min_size=2, max_size=9))
def test_hedges_g_by_its_definition(a, b):
    g = hedges_g(a, b)
    assume(g is not None)
    pooled = math.sqrt((np.var(a, ddof=1) * (len(a) - 1) + np.var(b, ddof=1) * (len(b) - 1)) / (len(a) + len(b) - 2))
    df = len(a) + len(b) - 2
    j = math.gamma(df / 2) / (math.sqrt(df / 2) * math.gamma((df - 1) / 2))
    assert g == pytest.approx(j * (np.mean(a) - np.mean(b)) / pooled, rel=1e-9, abs=1e-12)


def test_correction_in_closed_form():
    # G(1) / (sqrt 1 G(1/2)) and G(2) / (sqrt 2 G(3/2)); Hedges' approximation 1 - 3 / (4 df - 1) for large df
    assert correction(2) == pytest.approx(1 / math.sqrt(math.pi), rel=1e-14)
    assert correction(4) == pytest.approx(math.sqrt(2 / math.pi), rel=1e-14)
    assert correction(200) == pytest.approx(1 - 3 / (4 * 200 - 1), rel=1e-6)


def test_without_variation_nothing_is_divided():
    result = paired_difference([70.1, 71.1, 72.1], [68.1, 69.1, 70.1])
    assert result.degenerate
    assert result.mean == pytest.approx(2.0)
    assert (result.t, result.p, result.low, result.high) == (None, None, None, None)
    assert hedges_g([5.0, 5.0], [4.0, 4.0]) is None


def test_one_pair_has_an_estimate_only():
    result = paired_difference([71.0], [70.0])
    assert (result.mean, result.sd, result.p, result.low) == (1.0, None, None, None)
    assert hedges_g([71.0], [70.0]) is None


@pytest.mark.parametrize(("a", "b"), [([1.0], [1.0, 2.0]), ([], []), ([math.nan], [1.0]), ([[1.0]], [[2.0]])])
def test_unpaired_or_non_finite_values_are_refused(a, b):
    with pytest.raises(ValueError, match="paired values"):
        paired_difference(a, b)


def test_pairs_needed_matches_the_measured_example():
    needed = pairs_needed(sd=3.15, df=4, margin=2.0)
    assert (needed.pairs, needed.low, needed.high) == (22, 13, 76)


@given(st.floats(0.2, 8.0), st.floats(0.5, 4.0), st.integers(1, 3))
def test_pairs_needed_is_the_least_number_with_the_power(sd, margin, columns):
    n = pairs_needed(sd, 5, margin, columns=columns).pairs
    assert power(sd, margin, n, 0.05, columns) >= POWER
    assert n == LEAST_PAIRS or power(sd, margin, n - 1, 0.05, columns) < POWER


@pytest.mark.parametrize(("pairs", "size", "alpha"), [(6, 1.0, 0.05), (12, 0.7, 0.01), (30, 0.5, 0.05)])
def test_power_equals_statsmodels(pairs, size, alpha):
    expected = TTestPower().power(size, pairs, alpha / 2.0, alternative="larger")  # the wrong tail is no power
    assert power(2.0, 2.0 * size, pairs, alpha) == pytest.approx(expected, abs=1e-9)


@given(st.floats(0.2, 8.0), st.integers(6, 40), st.sampled_from((0.05, 0.0455, 0.0076, 1e-4)), st.integers(1, 3))
def test_the_smallest_resolvable_difference_has_just_the_power(sd, pairs, alpha, columns):
    size = smallest_resolvable(sd, pairs, alpha, columns)
    assert power(sd, size, pairs, alpha, columns) == pytest.approx(POWER, abs=1e-6)


def test_nothing_is_resolvable_without_degrees_of_freedom_or_without_a_bound():
    assert smallest_resolvable(1.0, 2, 0.05, columns=2) is None
    assert smallest_resolvable(1.0, 9, 0.0) is None


def test_a_bound_that_depends_on_the_pairs_is_asked_at_each_number():
    fixed, late = pairs_needed(3.0, 9, 2.0, 0.05), pairs_needed(3.0, 9, 2.0, lambda pairs: 0.05 if pairs >= 40 else 0.0)
    assert fixed.pairs < 40
    assert (late.pairs, late.low, late.high) == (40, 40, max(40, fixed.high))


def test_error_rate_and_coverage_without_an_effect():
    """3,000 simulated A/A experiments: nominal 5 % and 95 %, with the Monte-Carlo error of that many."""
    rng = np.random.default_rng(20260101)
    for pairs, rho in ((3, 0.0), (6, 0.6)):
        shared = rng.normal(0, math.sqrt(rho), (3000, pairs, 1))
        runs = 70 + 3.5 * (shared + rng.normal(0, math.sqrt(1 - rho), (3000, pairs, 2)))
        results = [paired_difference(runs[i, :, 0], runs[i, :, 1]) for i in range(len(runs))]
        rejected = np.mean([r.p <= 0.05 for r in results])
        covered = np.mean([r.low <= 0.0 <= r.high for r in results])
        assert abs(rejected - 0.05) < 0.012
        assert covered == pytest.approx(1.0 - rejected)
