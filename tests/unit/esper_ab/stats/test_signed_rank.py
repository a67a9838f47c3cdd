"""Signed-rank test and Hodges-Lehmann interval against scipy, plain enumeration and their own duality."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from esper_ab.stats.signed_rank import MAX_EXACT, hodges_lehmann_interval, signed_rank

fine = st.floats(-20.0, 20.0).map(lambda x: round(x, 6))
coarse = st.integers(-4, 4).map(float)  # many ties and zeros


@given(st.lists(fine, min_size=1, max_size=14))
def test_without_ties_it_is_scipys_exact_test(d):
    sizes = np.abs(np.round(d, 10))
    assume(len(set(sizes.tolist())) == len(d) and 0.0 not in sizes)
    result = signed_rank(d, np.zeros(len(d)))
    assert result.exact
    assert result.p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, abs=1e-12)


def test_beyond_scipys_own_limit_it_is_still_exact():
    d = np.random.default_rng(5).normal(0.4, 1.0, 60)
    assert signed_rank(d, np.zeros(60)).p == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-9)


def test_beyond_what_is_enumerated_it_says_approximate():
    d = np.random.default_rng(6).normal(0.1, 1.0, MAX_EXACT + 1)
    result = signed_rank(d, np.zeros(d.size))
    assert not result.exact
    assert result.p == pytest.approx(stats.wilcoxon(d, method="asymptotic").pvalue, rel=1e-12)


@given(st.lists(coarse, min_size=1, max_size=9))
def test_with_ties_and_zeros_it_equals_plain_enumeration(d):
    result = signed_rank(d, np.zeros(len(d)))
    kept = np.array([x for x in d if x != 0.0])
    assert result.n == kept.size
    if kept.size == 0:
        assert result.p == 1.0
        return
    ranks = stats.rankdata(np.abs(kept))
    sums = np.array([ranks @ np.array(signs) for signs in itertools.product((0, 1), repeat=kept.size)])
    observed = float(ranks[kept > 0].sum())
    tail = min(float(np.mean(sums <= observed)), float(np.mean(sums >= observed)))
    assert result.p == pytest.approx(min(1.0, 2.0 * tail), abs=1e-12)


@given(st.lists(st.tuples(fine, fine), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_swapping_flips_and_order_is_irrelevant(rows, random):
    a, b = [x for x, _ in rows], [y for _, y in rows]
    there, back = signed_rank(a, b), signed_rank(b, a)
    assert (there.p, there.n) == (back.p, back.n)
    assert there.estimate == -back.estimate
    random.shuffle(rows)
    assert signed_rank([x for x, _ in rows], [y for _, y in rows]) == there
    interval, mirrored = (hodges_lehmann_interval(*pair, 0.1) for pair in ((a, b), (b, a)))
    if interval is not None:
        assert interval == (-mirrored[1], -mirrored[0])
        assert interval[0] <= there.estimate <= interval[1]


@given(st.lists(fine, min_size=6, max_size=10), st.sampled_from((0.0078, 0.0313, 0.05, 0.1, 0.2, 0.5)))
def test_the_interval_holds_the_shifts_that_are_not_rejected(d, p):
    d = np.asarray(d)
    assume(len(set(np.round(d, 10).tolist())) == d.size)
    averages = np.unique([(x + y) / 2 for x, y in itertools.combinations_with_replacement(d, 2)])
    assume(averages.size == d.size * (d.size + 1) // 2 and np.min(np.diff(averages)) > 1e-6)
    interval = hodges_lehmann_interval(d, np.zeros(d.size), p)
    between = (averages[1:] + averages[:-1]) / 2
    for shift in (averages[0] - 1.0, *between, averages[-1] + 1.0):
        rejected = signed_rank(d - shift, np.zeros(d.size)).p <= p
        assert rejected == (interval is not None and not interval[0] < shift < interval[1])


def test_what_so_many_pairs_cannot_reach_has_no_interval():
    d = np.arange(1.0, 6.0)
    assert hodges_lehmann_interval(d, np.zeros(5), 0.05) is None  # 2 / 2^5 = 0.0625
    assert hodges_lehmann_interval(d, np.zeros(5), 0.0625) == (1.0, 5.0)
    assert hodges_lehmann_interval([], [], 0.05) is None


def test_differences_equal_but_for_rounding_are_ties():
    a, b = [70.3, 60.1, 8.7, 73.3], [70.2, 60.2, 8.6, 70.3]  # sizes 0.1, 0.1, 0.1, spelt differently in binary
    assert len({abs(x - y) for x, y in zip(a, b, strict=True)}) > 2
    assert signed_rank(a, b).p == signed_rank([0.1, -0.1, 0.1, 3.0], np.zeros(4)).p
