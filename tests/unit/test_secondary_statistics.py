"""Pair correlation, bootstrap intervals, equivalence and Cliff's delta against scipy and statsmodels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import ttost_paired

from esper_ab.stats.adjusted_difference import adjusted_difference
from esper_ab.stats.bootstrap import HONEST_FROM
from esper_ab.stats.descriptive.correlation import pair_correlation
from esper_ab.stats.descriptive.improvement import probability_of_improvement
from esper_ab.stats.descriptive.improvement_interval import improvement_interval
from esper_ab.stats.descriptive.iqm import interquartile_mean, iqm_difference
from esper_ab.stats.descriptive.mann_whitney import mann_whitney
from esper_ab.stats.equivalence import equivalence
from esper_ab.stats.pair import degenerate

accuracies = st.floats(0.0, 100.0).map(lambda x: round(x, 3))
paired = st.lists(st.tuples(accuracies, accuracies), min_size=2, max_size=12)


def columns(rows):
    return [a for a, _ in rows], [b for _, b in rows]


def varied(values):
    return np.std(values) > 0.01


def plain(a, b):
    return adjusted_difference(a, b, [(0, 1)] * len(a), 1)


@given(paired)
def test_pair_correlation_equals_scipy(rows):
    a, b = columns(rows)
    assume(len(rows) >= 4 and varied(a) and varied(b))
    expected = stats.pearsonr(a, b)
    result = pair_correlation(a, b)
    assert result.r == pytest.approx(expected.statistic, abs=1e-9)
    assume(abs(result.r) < 0.999999)
    interval = expected.confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    independent = np.var(a, ddof=1) + np.var(b, ddof=1)
    assert result.worth == pytest.approx(independent / np.var(np.subtract(a, b), ddof=1), rel=1e-9)
    assert result == pair_correlation(b, a)


def test_pair_correlation_where_there_is_none():
    assert pair_correlation([1.0, 2.0], [2.0, 3.0]) is None
    assert pair_correlation([1.0, 2.0, 3.0], [5.0, 5.0, 5.0]) is None
    three = pair_correlation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    assert three.low is three.high is None
    same = pair_correlation([1.0, 2.0, 4.0, 5.0], [2.0, 3.0, 5.0, 6.0])
    assert (same.r, same.low, same.worth) == (1.0, None, None)


def test_what_a_pair_is_worth():
    """Independent runs need as many times the pairs for the same spread of the mean difference, equal SDs or not."""
    rng = np.random.default_rng(1)
    shared = rng.normal(0, math.sqrt(0.6), 200_000)
    a, b = (shared + rng.normal(0, math.sqrt(0.4), 200_000) for _ in range(2))
    for one, other in ((a, b), (a, 3.0 * b)):
        found = pair_correlation(one, other)
        assert np.var(one - rng.permutation(other)) / np.var(one - other) == pytest.approx(found.worth, rel=0.03)
    assert pair_correlation(a, b).worth == pytest.approx(1.0 / (1.0 - pair_correlation(a, b).r), rel=1e-4)
    assert found.worth < 0.8 / (1.0 - found.r)


@given(st.lists(accuracies, min_size=1, max_size=30))
def test_interquartile_mean_is_the_mean_without_a_quarter_at_each_end(runs):
    assert interquartile_mean(runs) == pytest.approx(stats.trim_mean(runs, 0.25), rel=1e-12, abs=1e-12)


@settings(max_examples=20)
@given(paired)
def test_bootstrap_intervals_flip_with_the_groups_and_are_the_same_for_the_same_generator(rows):
    a, b = columns(rows)
    there, again, back = (iqm_difference(*pair, np.random.default_rng(3)) for pair in ((a, b), (a, b), (b, a)))
    assert there == again
    assert (back.mean, back.low, back.high) == pytest.approx((-there.mean, -there.high, -there.low), abs=1e-9)
    wins, losses = (improvement_interval(*pair, np.random.default_rng(3)) for pair in ((a, b), (b, a)))
    assert (losses.a12, losses.low, losses.high) == pytest.approx((1 - wins.a12, 1 - wins.high, 1 - wins.low))
    assert wins.a12 == pytest.approx(probability_of_improvement(a, b).a12)
    assert 0.0 <= wins.low <= wins.high <= 1.0


def test_bootstrap_intervals_are_those_of_scipy_but_for_resampling():
    rng = np.random.default_rng(8)
    a = rng.normal(70, 3, 14)
    b = 0.5 * a + rng.normal(33, 2, 14)

    def difference(x, y, axis):
        return stats.trim_mean(x, 0.25, axis=axis) - stats.trim_mean(y, 0.25, axis=axis)

    expected = stats.bootstrap(
        (a, b), difference, paired=True, vectorized=True, method="percentile", n_resamples=20_000,
        rng=np.random.default_rng(9),
    )
    result = iqm_difference(a, b, np.random.default_rng(10))
    width = expected.confidence_interval.high - expected.confidence_interval.low
    assert result.low == pytest.approx(expected.confidence_interval.low, abs=0.04 * width)
    assert result.high == pytest.approx(expected.confidence_interval.high, abs=0.04 * width)


def test_improvement_interval_resamples_pairs():
    """Of two pairs a quarter of the resamples is twice the first, a quarter twice the second."""
    result = improvement_interval([3.0, 1.0], [2.0, 5.0], np.random.default_rng(0))
    assert (result.a12, result.low, result.high) == (0.25, 0.0, 1.0)


def test_a_bootstrap_of_few_runs_says_that_it_is_not_honest():
    rng = np.random.default_rng(2)
    for n, honest in ((HONEST_FROM - 1, False), (HONEST_FROM, True)):
        a, b = rng.normal(70, 3, n), rng.normal(70, 3, n)
        assert iqm_difference(a, b, rng).honest is honest
        assert improvement_interval(a, b, rng).honest is honest
    with pytest.raises(ValueError, match="one pair"):
        iqm_difference([1.0], [2.0], rng)


@given(paired, st.floats(0.5, 30.0))
def test_equivalence_equals_statsmodels(rows, margin):
    a, b = columns(rows)
    assume(varied(np.subtract(a, b)) and not degenerate(np.subtract(a, b)))
    p, (_, p_lower, _), (_, p_upper, _) = ttost_paired(np.array(a), np.array(b), -margin, margin)
    result = equivalence(plain(a, b), margin, 0.05)
    assert (result.p, result.p_lower, result.p_upper) == pytest.approx((p, p_lower, p_upper), rel=1e-9, abs=1e-12)


@given(paired, st.floats(0.5, 30.0), st.sampled_from((0.0076, 0.0455, 0.05)))
def test_equivalence_is_the_narrower_interval_inside_the_margin(rows, margin, bound):
    a, b = columns(rows)
    assume(varied(np.subtract(a, b)) and not degenerate(np.subtract(a, b)))
    effect = plain(a, b)
    low, high = effect.interval(2.0 * bound)
    assume(min(abs(low + margin), abs(high - margin)) > 1e-9)
    assert equivalence(effect, margin, bound).shown == (-margin < low and high < margin)
    there, back = equivalence(effect, margin, bound), equivalence(plain(b, a), margin, bound)
    assert (there.p_lower, there.p_upper) == pytest.approx((back.p_upper, back.p_lower), rel=1e-9)


def test_equivalence_divides_by_no_zero():
    assert equivalence(plain([70.0, 71.0], [70.0, 71.0]), 2.0, 0.05) is None


@given(paired)
def test_cliffs_delta_by_its_definition(rows):
    a, b = columns(rows)
    above, below = (np.mean(op(np.subtract.outer(a, b), 0.0)) for op in (np.greater, np.less))
    delta = probability_of_improvement(a, b).cliffs_delta
    assert delta == pytest.approx(above - below, abs=1e-12)
    assert delta == pytest.approx(2.0 * mann_whitney(a, b).u / len(rows) ** 2 - 1.0, abs=1e-12)
